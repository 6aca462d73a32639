"""Estimate the number of categories K of a run, or check a given K."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from justright.estimation import COUNTERS
from justright.estimation.base import CategoryCounter
from justright.features.table import FeatureTable
from justright.runs.problem import Problem
from justright.runs.run_features import fingerprints
from justright.runs.run_folder import RunFolder
from justright.runs.spec import RunSpec
from justright.utils.errors import DegenerateError
from justright.utils.settings import is_made_with
from justright.utils.types import UNLABELED, Mask

_log = logging.getLogger(__name__)

ENOUGH_CLASSES = 3  # classes that show how wide a class is
MARGIN, MOST_MORE = 0.4, 0.25  # of `with_margin`
MOST_CHECKED = 20_000  # images; a given K is not checked for more, because an estimate would take minutes


@dataclass(frozen=True)
class Count:
    """The number of categories that a run looks for."""

    n_categories: int
    source: str  # the name of a counter, or "given"
    estimate: Mapping[str, Any] | None = None  # as in count.json, where K was estimated or checked
    notes: tuple[str, ...] = ()  # for the notes of the run

    def below_estimate(self) -> float:
        """How far a given K is below its estimate, as a logarithm; otherwise 0."""
        if self.estimate is None or self.source != "given":
            return 0.0
        return max(0.0, math.log(self.estimate["n_categories"] / self.n_categories))


def count_categories(
    problem: Problem, spec: RunSpec, folder: RunFolder, pool: FeatureTable, target: FeatureTable, is_checked: bool
) -> Count:
    """K as it is given, or its estimate, which for the joint answer gets a margin.

    Parameters:
        folder: of the run, where estimates are kept in count.json.
        is_checked: compare a given K with an estimate, unless that would take long.
    """
    n_known = len(problem.own_classes)
    if spec.n_target is not None:
        if not (is_checked and n_known and len(pool) + len(target) <= MOST_CHECKED):
            return Count(spec.n_target, "given")
        estimate = None
        try:
            estimate = _kept_estimate(problem, spec, folder, pool, target)
            doubt = k_note(spec.n_target, estimate)
        except DegenerateError as error:
            doubt = f"--k {spec.n_target:,} was not checked: {error.problem}"
        if doubt:
            _log.warning("%s.", doubt)  # now, because training may take long
        return Count(spec.n_target, "given", estimate, (doubt,) if doubt else ())
    estimate = _kept_estimate(problem, spec, folder, pool, target)
    k, interval, notes = int(estimate["n_categories"]), estimate["interval"], []
    if interval is None:
        return Count(k, spec.counter, estimate)
    between = f"90 % interval {interval[0]:,} to {interval[1]:,}"
    if not len(pool):
        notes.append(f"without any label K = {k:,} is rough, {between}")
    is_reviewed = np.isin(pool.labels, problem.own_classes) & problem.is_reviewed()
    if np.any(is_reviewed & ~unsure_labels(problem, pool)):
        notes.append(f"K is estimated as {k:,} from labels of a review, which make it too large rather than too small")
        return Count(k, spec.counter, estimate, tuple(notes))
    more = with_margin(estimate, n_known) if spec.answer == "joint" else k
    if more > k:
        notes.append(
            f"K is estimated as {k:,}, {between}; {more:,} categories are looked for, because too few cost more "
            "accuracy than too many"
        )
    return Count(more, spec.counter, estimate, tuple(notes))


def _kept_estimate(
    problem: Problem, spec: RunSpec, folder: RunFolder, pool: FeatureTable, target: FeatureTable
) -> dict[str, Any]:
    """The estimate of the counter, read from count.json if these images were counted before."""
    made_with = {"counter": spec.counter, "seed": spec.seed} | fingerprints(pool, target)
    count = folder.count
    if count is None or not is_made_with(count, made_with):
        tables = counted_tables(problem, pool, target)
        own = sorted(set(problem.own_classes) & set(pool.labels.tolist()))
        count = counted(spec.counter, *tables, own, spec.seed) | {"made_with": made_with}
        folder.save_json("count.json", count)
    return dict(count["estimates"][spec.counter])


def counted_tables(problem: Problem, pool: FeatureTable, target: FeatureTable) -> tuple[FeatureTable, FeatureTable]:
    """The features of labeled and target images for an estimate of K, each image once.

    Counters learn from labeled images how wide a class is. Labels of a review are left out of that if there are enough
    others, see `unsure_labels`: those images count as unlabeled. K is never below the number of known classes.
    """
    is_unsure, is_given = unsure_labels(problem, pool), problem.is_given_too()
    if not (is_unsure | is_given).any():
        return pool, target
    # a labeled image of the target is removed from one of the two sides
    labeled = set(np.flatnonzero(is_given & ~is_unsure).tolist())
    rows = problem.rows_of_target(labeled) if labeled else np.zeros(0, dtype=np.int64)
    return pool.take(np.flatnonzero(~is_unsure)), target.take(np.setdiff1d(np.arange(len(target)), rows))


def unsure_labels(problem: Problem, pool: FeatureTable) -> Mask:
    """The labeled images that K is better estimated without.

    Images confirmed in a review were grouped by a clustering and are closer together than their class: with them K is
    too high, without any label it is further off (docs/research/categories.md). So they are used only if other labels
    cover too few classes. Labeled images of the target may come from a review too and are left out first.
    """
    is_own = np.isin(pool.labels, problem.own_classes)
    is_reviewed, is_given = is_own & problem.is_reviewed(), problem.is_given_too()
    for is_unsure in (is_reviewed | is_given, is_reviewed):
        labels = pool.labels[is_own & ~is_unsure]
        n_classes = len(np.unique(labels))
        if len(labels) > n_classes >= ENOUGH_CLASSES:
            return is_unsure
    return np.zeros_like(is_own)


def fitted_counter(
    name: str, pool: FeatureTable, target: FeatureTable, own: Collection[int], seed: int
) -> CategoryCounter:
    """The counter of this name, fitted to labeled images of the target's own classes and to the target.

    Without own classes it is fitted to the target alone, with the pool as an example of classes.
    """
    counter, unlabeled = COUNTERS[name](seed=seed), np.full(len(target), UNLABELED)
    rows = np.isin(pool.labels, list(own))
    if not rows.any():
        others = (pool.features, pool.labels) if len(pool) else None
        return counter.fit(np.asarray(target.features), unlabeled, others)
    features = np.concatenate([pool.features[rows], target.features])
    return counter.fit(features, np.concatenate([pool.labels[rows], unlabeled]))


def estimate_record(counter: CategoryCounter, interval: tuple[int, int] | None) -> dict[str, Any]:
    """An estimate for JSON: K, its interval and its curve."""
    curve = {"curve": counter.curve_.tolist(), "axes": counter.curve_axes}
    return {"n_categories": counter.n_categories_, "interval": interval} | curve


def counted(name: str, pool: FeatureTable, target: FeatureTable, own: Collection[int], seed: int) -> dict[str, Any]:
    """The content of count.json: the estimate of the counter of this name."""
    counter, is_own = fitted_counter(name, pool, target, own, seed), np.isin(pool.labels, list(own))
    estimate = estimate_record(counter, counter.interval() if counter.is_interval_quick else None)
    n_images = int(is_own.sum()) + len(target)
    # a class whose labeled images are all images of the target has no rows here
    estimate["n_categories"] = max(estimate["n_categories"], len(own))
    if estimate["interval"] is not None:
        estimate["interval"] = tuple(max(bound, len(own)) for bound in estimate["interval"])
    return {"estimates": {name: estimate}, "labeled_classes": len(own), "images": n_images}


def with_margin(estimate: Mapping[str, Any], n_known: int) -> int:
    """The number of categories to look for, which is above the estimate: too few cost more accuracy than too many.

        K + min(0.4 (1 - L / K) (high - K), K / 4)

    L is the number of known classes, high the upper end of the interval. Without known classes it is the estimate, for
    that is rather too large already: docs/research/categories.md
    """
    k, interval = estimate["n_categories"], estimate["interval"]
    if interval is None or not n_known:
        return int(k)
    return round(k + min(MARGIN * (1 - n_known / k) * (interval[1] - k), MOST_MORE * k))


def check_k(given: int, n_known: int, n_images: int) -> None:
    """Raise if K is below the number of known classes, or so large that a category would have no image.

    Parameters:
        given: K, from the user.
        n_known: labeled classes that the target may contain; K may equal it.
        n_images: number of target images.
    """
    if given < n_known:
        raise DegenerateError(
            f"--k {given:,} with {n_known:,} known classes. --k counts known and new categories: at least "
            f"{n_known + 1:,} here",
            advice=f"omit --k, or use --k {n_known:,} if the target has no new categories",
        )
    if given - n_known > n_images:
        known = f" and {n_known:,} known classes" if n_known else ""
        raise DegenerateError(
            f"--k {given:,} for {n_images:,} images of the target{known}",
            expected=f"at most {n_known + n_images:,}, so that each new category has an image",
            advice="use a smaller --k, or omit it",
        )


def k_note(given: int, estimate: Mapping[str, Any]) -> str | None:
    """A warning if K is outside the interval of an estimate, as in count.json; else None.

    How often the warning is right: docs/research/categories.md. What a wrong K costs: docs/research/training.md.
    """
    if estimate["interval"] is None:
        return None
    low, high = estimate["interval"]
    if low <= given <= high:
        return None
    side, cost = ("small", "share clusters") if given < low else ("large", "are split")
    return (
        f"--k {given:,} looks too {side}: these images suggest {estimate['n_categories']:,} categories "
        f"({low:,} to {high:,}). With too {side} a K categories {cost}; omit --k to use the estimate"
    )
