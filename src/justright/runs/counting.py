"""How many categories the target of a run has: estimated, or given by a person and compared with an estimate."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from justright.estimation import COUNTERS
from justright.estimation.base import CategoryCounter
from justright.features.table import FeatureTable
from justright.runs.problem import Problem
from justright.utils.errors import DegenerateError
from justright.utils.types import UNLABELED

ENOUGH_CLASSES = 10  # that tell how wide a class is, or half of all labeled ones
MOST_CHECKED = 20_000  # of more images no K is checked: an estimate would take minutes, and memory


def counted_tables(problem: Problem, pool: FeatureTable, target: FeatureTable) -> tuple[FeatureTable, FeatureTable]:
    """Features of the labeled images and of the target to count in, each image once.

    Counters learn from labeled images how wide a class is. Images that were confirmed in a review were brought together
    by a clustering and lie closer than their class does: with them K comes out too high (docs/findings.md). So they
    count as unlabeled. Images of the target that were labeled may come from a review too: they tell of classes only
    where too few others do. The classes themselves are known in any case: K is never below their number.
    """
    is_own = np.isin(pool.labels, problem.own_classes)
    is_reviewed, is_given = is_own & problem.is_reviewed(), problem.is_given_too()
    if not (is_reviewed | is_given).any():
        return pool, target
    n_own = len(np.unique(pool.labels[is_own]))
    for is_unsure in (is_reviewed | is_given, is_reviewed):
        tells = pool.labels[is_own & ~is_unsure]
        n_tells = len(np.unique(tells))
        if len(tells) > n_tells >= min(ENOUGH_CLASSES, n_own / 2):
            break
    else:
        is_unsure = is_own
    # a labeled image of the target is left out on one of the two sides
    labeled = set(np.flatnonzero(is_given & ~is_unsure).tolist())
    rows = problem.rows_of_target(labeled) if labeled else np.zeros(0, dtype=np.int64)
    return pool.take(np.flatnonzero(~is_unsure)), target.take(np.setdiff1d(np.arange(len(target)), rows))


def fitted_counter(
    name: str, pool: FeatureTable, target: FeatureTable, own: Collection[int], seed: int
) -> CategoryCounter:
    """The counter of this name after it has counted labeled images of the target's own classes, then the target.

    Where there are no own classes, the target is counted alone, and the pool, if any, tells what classes look like.
    """
    counter, unlabeled = COUNTERS[name](seed=seed), np.full(len(target), UNLABELED)
    rows = np.isin(pool.labels, list(own))
    if not rows.any():
        others = (pool.features, pool.labels) if len(pool) else None
        return counter.fit(np.asarray(target.features), unlabeled, others)
    features = np.concatenate([pool.features[rows], target.features])
    return counter.fit(features, np.concatenate([pool.labels[rows], unlabeled]))


def estimate_record(counter: CategoryCounter, interval: tuple[int, int] | None) -> dict[str, Any]:
    """What files say of an estimate: K, its interval and the curve it was read from."""
    curve = {"curve": counter.curve_.tolist(), "axes": counter.curve_axes}
    return {"n_categories": counter.n_categories_, "interval": interval} | curve


def counted(name: str, pool: FeatureTable, target: FeatureTable, own: Collection[int], seed: int) -> dict[str, Any]:
    """What count.json says after the counter of this name has counted."""
    counter, is_own = fitted_counter(name, pool, target, own, seed), np.isin(pool.labels, list(own))
    estimate = estimate_record(counter, counter.interval() if counter.is_interval_quick else None)
    n_images = int(is_own.sum()) + len(target)
    # a class of which every labeled image is an image of the target has no row of its own here
    estimate["n_categories"] = max(estimate["n_categories"], len(own))
    if estimate["interval"] is not None:
        estimate["interval"] = tuple(max(bound, len(own)) for bound in estimate["interval"])
    return {"estimates": {name: estimate}, "labeled_classes": len(own), "images": n_images}


def refuse_k(given: int, n_known: int, n_images: int) -> None:
    """Raise if K is below the number of known classes, or so large that some category would have no image.

    Parameters:
        given: the K that a person gave.
        n_known: labeled classes that the target may show; K may equal it, if nothing new is expected.
        n_images: images of the target.
    """
    if given < n_known:
        raise DegenerateError(
            f"--k {given:,} with {n_known:,} known classes. --k counts known and new categories: at least "
            f"{n_known + 1:,} here, or leave it out",
            advice=f"--k {n_known:,} only if the target shows nothing new",
        )
    if given - n_known > n_images:
        known = f" and {n_known:,} known classes" if n_known else ""
        raise DegenerateError(
            f"--k {given:,} for {n_images:,} images of the target{known}",
            expected=f"at most {n_known + n_images:,}, so that each new category has an image",
            advice="a smaller --k, or leave it out",
        )


def k_note(given: int, estimate: Mapping[str, Any]) -> str | None:
    """What to say of a K that lies outside the interval of an estimate; None where it lies inside, or there is none.

    How often that is right: docs/findings.md. What a wrong K costs: docs/discovery.md.

    Parameters:
        given: the K that a person gave.
        estimate: as in count.json.
    """
    if estimate["interval"] is None:
        return None
    low, high = estimate["interval"]
    if low <= given <= high:
        return None
    side, cost = ("small", "share clusters") if given < low else ("large", "are split")
    return (
        f"--k {given:,} looks too {side}: these images suggest {estimate['n_categories']:,} categories "
        f"({low:,} to {high:,}). With too {side} a K categories {cost}; leave --k out to take the estimate, unless you "
        "know better"
    )
