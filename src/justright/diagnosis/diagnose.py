"""Is it better to use no pool, all of it, or a selection? Tried out on hidden classes, without target labels."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import numpy as np
from jaxtyping import Float, Int

from justright.clustering import SemiSupKMeans
from justright.diagnosis.hidden_classes import HiddenClasses, HiddenProblem, hidden_classes, sampled_rows
from justright.diagnosis.verdict import EVERYTHING, OWN, Diagnosis, DrawScores
from justright.evaluation import Scores, evaluate
from justright.geometry import unit_rows
from justright.selection import OwnSelector, Selector
from justright.selection.by_name import choosing_selectors, selector_of
from justright.selection.discriminant import discriminant_features
from justright.utils.context import track
from justright.utils.errors import DegenerateError, NothingSelectedError
from justright.utils.types import UNLABELED, Array

LabeledFeatures = tuple[Float[Array, "_ _"], Int[Array, " _"]]  # features, and a label each
N_DRAWS = 16
N_INIT = 2  # starts of k-means, the same for every setting: only the selection differs
POOL_SHARE = 0.5  # total weight of the pool when features are learned, where that of the own labels is 1


def standard_settings(n_clusters: int, seed: int = 0) -> dict[str, Selector]:
    """What `diagnose` compares unless told otherwise, by the names of the selectors."""
    return {name: selector_of(name, {}, seed, n_clusters) for name in (OWN, EVERYTHING, *choosing_selectors())}


def diagnose(
    own: LabeledFeatures,
    pool: LabeledFeatures,
    target: Float[Array, "target dim"],
    n_categories: int,
    settings: Mapping[str, Selector] | None = None,
    n_draws: int = N_DRAWS,
    seed: int = 0,
) -> Diagnosis:
    """Try out discovery with each setting on problems whose answer is known.

    Each setting weighs the pool by the target, once. In each draw half of the target's own labeled classes are hidden
    (`HiddenClasses.draw`). Linear discriminants of the labels that stay and of the weighted pool stand in for training;
    semi-supervised k-means with `n_categories` clusters over own and target images finds the hidden classes again.
    All settings meet the same draws, so their differences to own labels alone are paired.

    own           features and labels of the target's own classes
    pool          features and labels to select from
    target        features of the unlabeled images
    n_categories  number of categories in the target, K
    settings      selectors to compare, by name; `standard_settings` if not given
    n_draws       how often classes are hidden
    """
    if n_draws < 2:
        raise DegenerateError(f"{n_draws} draws", expected="at least 2, to know how much draws differ")
    settings = {OWN: OwnSelector()} | dict(standard_settings(n_categories, seed) if settings is None else settings)
    source = hidden_classes(*own, target, seed)
    rows = sampled_rows(pool[1], seed, "pool")
    weights = {}
    for name, selector in settings.items():
        with suppress(NothingSelectedError):  # then it is own labels alone, and has no weights
            # quietly: remarks about a selector that may not be chosen would only confuse
            weights[name] = selector.fit(*pool, target, quiet=True).sample_weight(pool[1])
    kept = {name: float((weight > 0).mean()) for name, weight in weights.items()}
    sample = unit_rows(pool[0][rows]), pool[1][rows]
    outcomes: dict[str, list[DrawScores | None]] = {name: [] for name in settings}
    for number in track(range(n_draws), n_draws, "draws of hidden classes"):
        problem = source.draw(number)
        for name, outcome in outcomes.items():
            scores = None
            if name in weights:
                scores = _score(source, problem, sample, weights[name][rows], n_categories, seed + number)
            outcome.append(None if scores is None else DrawScores(scores.new, scores.all, kept[name]))
    return Diagnosis.of(outcomes, source.n_classes, source.n_hidden)


def _score(
    source: HiddenClasses, problem: HiddenProblem, pool: LabeledFeatures, weight: Array, n_categories: int, seed: int
) -> Scores | None:
    """How well hidden images are found with this selection; None where nothing can be learned from it."""
    known_labels, is_old = problem
    is_seen, is_used = known_labels != UNLABELED, weight > 0
    n_seen, used = int(is_seen.sum()), weight[is_used]
    shares = np.concatenate([np.full(n_seen, 1 / n_seen), POOL_SHARE * used / used.sum()])
    features = np.concatenate([source.own[is_seen], pool[0][is_used]])
    # own and pool labels may be equal numbers for other classes
    labels = np.concatenate([2 * known_labels[is_seen], 2 * pool[1][is_used] + 1])
    everything = np.concatenate([source.own, source.target])
    try:
        seen = discriminant_features(features, labels, everything, shares)
    except DegenerateError:
        return None
    given = np.concatenate([known_labels, np.full(len(source.target), UNLABELED)])
    n_clusters = max(n_categories, source.n_classes)
    clusters = SemiSupKMeans(n_clusters, n_init=N_INIT, seed=seed).fit(seen, given).labels_
    found = np.asarray(clusters[: len(source.own)])[~is_seen]
    return evaluate(source.own_labels[~is_seen], found, is_old[~is_seen], n_resamples=0)
