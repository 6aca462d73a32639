"""Which selector, or none? Judged without target labels, on held-out classes of the pool."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Float

from justright.benchmark.diagnosis import NONE, Diagnosis, Outcome
from justright.benchmark.pseudo_problem import PseudoProblem, problem_source
from justright.clustering import SemiSupKMeans
from justright.errors import DegenerateError
from justright.evaluation import evaluate
from justright.progress import Track, silent
from justright.selection import BetaSelector, BinsSelector, CuiSelector, Selector, UniformSelector
from justright.selection.beta_weights import final_weights
from justright.selection.discriminant import discriminant_features
from justright.types import UNLABELED, Array, Features, Labels

Space: TypeAlias = Literal["frozen", "linear"]
SPACES: tuple[Space, ...] = ("frozen", "linear")

N_DRAWS = 20
SET_HERE = ("n_clusters", "seed")
"""Parameters of selectors that each problem sets: the number of categories is known there."""

N_INIT = 3
"""Restarts of k-means: the same for every setting, so what is compared is the selection."""


def standard_settings(space: Space = "frozen") -> dict[str, Selector]:
    """The settings that `diagnose` compares unless told otherwise; none is always among them."""
    settings: dict[str, Selector] = {
        NONE: UniformSelector(),
        "cui": CuiSelector(),
        "bins": BinsSelector(),
        "bins, discard only": BinsSelector(select=False),
        "beta, weight > 0.5": BetaSelector(threshold=0.5),
        "beta, weight > 1": BetaSelector(threshold=1.0),
        "beta by rank, weight > 1": BetaSelector(domain="rank", threshold=1.0),
    }
    if space == "linear":  # on frozen features a soft weight counts as 1, so a soft selection as none
        settings |= {"beta": BetaSelector(), "beta by rank": BetaSelector(domain="rank")}
    return settings


def with_setting(settings: Mapping[str, Selector], name: str, selector: Selector) -> dict[str, Selector]:
    """The settings and one more, unless it is among them already; number of clusters and seed make no difference."""
    if any(_same(selector, other) for other in settings.values()):
        return dict(settings)
    return {**settings, name: selector}


def diagnose(
    pool_features: Features,
    pool_labels: Labels,
    target_features: Float[Array, "target dim"],
    settings: Mapping[str, Selector] | None = None,
    n_draws: int = N_DRAWS,
    seed: int = 0,
    track: Track = silent,
    space: Space = "frozen",
) -> Diagnosis:
    """Compare settings with using everything, on problems drawn from the pool whose answer is known.

    In each draw some classes of the pool that look like the target play its part (`ProblemSource.draw`). Each setting
    selects from the rest, semi-supervised k-means with the true number of categories finds the classes again, labeled
    by all images that weigh more than 0, and New is the accuracy on the held-out classes. All settings meet the same
    draws, so differences to none are paired.

    space  "frozen": features as they are; "linear": as linear discriminants of the weighted pool show them, a stand-in
           for training in which soft weights count too
    """
    settings = standard_settings(space) if settings is None else dict(settings)
    settings = {NONE: UniformSelector()} | dict(settings)
    if n_draws < 2:
        raise DegenerateError(f"{n_draws} draws", expected="at least 2, to know how much draws differ")
    source = problem_source(pool_features, pool_labels, target_features, seed)
    outcomes: dict[str, list[Outcome | None]] = {name: [] for name in settings}
    with _without_remarks():
        for number in track(range(n_draws), n_draws, "draws of held-out classes"):
            problem = source.draw(number)
            judged: dict[bytes, Outcome] = {}
            for name, selector in settings.items():
                outcomes[name].append(_judge(problem, selector, seed + number, space, judged))
    # Draws share classes: Nadeau and Bengio (2003) widen the interval by held-out over remaining.
    overlap = source.n_new / (source.n_classes - source.n_new)
    return Diagnosis.of(outcomes, overlap, source.n_classes, source.n_new, space)


@contextmanager
def _without_remarks() -> Iterator[None]:
    """What a selector remarks about weights of a pseudo-problem is not about the user's data."""
    logger = logging.getLogger(final_weights.__module__)

    def drop(record: logging.LogRecord) -> bool:
        return False

    logger.addFilter(drop)
    try:
        yield
    finally:
        logger.removeFilter(drop)


def _judge(
    problem: PseudoProblem, selector: Selector, seed: int, space: Space, judged: dict[bytes, Outcome]
) -> Outcome | None:
    """How well the new classes are found with this selection; None where nothing is left to select."""
    fitted = _for_problem(selector, problem.n_categories, seed)
    try:
        fitted.fit(problem.pool, problem.pool_labels, problem.target)
        weight = fitted.sample_weight(problem.pool_labels)
        is_kept = weight > 0
        key = weight.tobytes() if space == "linear" else is_kept.tobytes()
        if key not in judged:  # settings often agree, and clustering is what takes time
            judged[key] = _score(problem, weight, seed, space)
    except DegenerateError:
        return None
    return judged[key]


def _same(one: Selector, other: Selector) -> bool:
    params = [{k: v for k, v in each.get_params().items() if k not in SET_HERE} for each in (one, other)]
    return type(one) is type(other) and params[0] == params[1]


def _for_problem(selector: Selector, n_categories: int, seed: int) -> Selector:
    """A copy that draws by this seed and, where it clusters, knows the number of categories."""
    copied = copy.copy(selector.reseeded(seed))
    if "n_clusters" in selector.get_params():
        vars(copied)["n_clusters"] = n_categories
    return copied


def _score(problem: PseudoProblem, weight: Float[Array, " pool"], seed: int, space: Space) -> Outcome:
    is_kept = weight > 0
    labeled, labels = problem.pool[is_kept], problem.pool_labels[is_kept]
    features = np.concatenate([labeled, problem.target])
    if space == "linear":
        features = discriminant_features(problem.pool, problem.pool_labels, features, weight)
    given = np.concatenate([labels, np.full(len(problem.target), UNLABELED)])
    n_clusters = len(np.union1d(labels, problem.truth))
    clusters = SemiSupKMeans(n_clusters, n_init=N_INIT, seed=seed).fit(features, given).labels_[len(labels) :]
    scores = evaluate(problem.truth, np.asarray(clusters), problem.is_old, n_resamples=0)
    return Outcome(new=scores.new, all=scores.all, kept=len(np.unique(labels)) / len(np.unique(problem.pool_labels)))
