"""Is it better to use no pool, all of it, or a selection? A rehearsal on hidden classes, without target labels."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from justright.clustering import SemiSupKMeans
from justright.evaluation import Scores, evaluate
from justright.geometry import unit_rows
from justright.selection import OwnSelector, Selector, selector_of, selectors_by_target
from justright.selection.verdict import EVERYTHING, OWN, Diagnosis, DrawScores
from justright.utils.context import track
from justright.utils.errors import DegenerateError, NothingSelectedError
from justright.utils.seeding import generator
from justright.utils.types import UNLABELED, Array, Labels
from justright.utils.validation import check_directions, check_features

LabeledFeatures = tuple[Float[Array, "_ _"], Int[Array, " _"]]  # features, and a label each
N_DRAWS = 16
N_INIT = 2  # starts of k-means, the same for every setting: only the selection differs
POOL_SHARE = 0.5  # total weight of the pool when features are learned, where that of the own labels is 1
SHRINKAGE = 0.1  # share of a plain sphere mixed into the scatter within classes, so that it can be inverted

# beyond these numbers images and classes are drawn at random, to keep each of the many problems small
MAX_PER_CLASS, MAX_CLASSES, MAX_TARGET = 50, 400, 4_000
LEAST_IMAGES, LEAST_CLASSES = 4, 4  # with fewer, half of them would be too few to learn from or to discover


def standard_settings(n_clusters: int, seed: int = 0) -> dict[str, Selector]:
    """The settings that `diagnose` compares by default, by the names of the selectors."""
    return {name: selector_of(name, {}, seed, n_clusters) for name in (OWN, EVERYTHING, *selectors_by_target())}


def diagnose(
    own: LabeledFeatures,
    pool: LabeledFeatures,
    target: Float[Array, "target dim"],
    n_categories: int,
    settings: Mapping[str, Selector] | None = None,
    n_draws: int = N_DRAWS,
    seed: int = 0,
) -> Diagnosis:
    """Rehearse discovery with each setting on problems whose answer is known.

    Each setting weighs the pool by the target, once. In each draw half of the target's own labeled classes are hidden
    (`HiddenClasses.draw`). Linear discriminants of the remaining labels and of the weighted pool replace training; then
    semi-supervised k-means with `n_categories` clusters over own and target images discovers the hidden classes. All
    settings get the same draws, so their differences to own labels alone are paired.

    own           features and labels of the target's own classes
    pool          features and labels to select from
    target        features of the unlabeled images
    n_categories  number of categories in the target, K
    settings      selectors to compare, by name; `standard_settings` if not given
    n_draws       number of problems with hidden classes
    """
    if n_draws < 2:
        raise DegenerateError(f"{n_draws} draws", expected="at least 2, to estimate how much draws differ")
    settings = {OWN: OwnSelector()} | dict(standard_settings(n_categories, seed) if settings is None else settings)
    source = hidden_classes(*own, target, seed)
    rows = sampled_rows(pool[1], seed, "pool")
    weights = {}
    for name, selector in settings.items():
        with suppress(NothingSelectedError):  # then it is own labels alone, and has no weights
            # quiet: remarks about a selector that is not chosen would confuse
            weights[name] = selector.fit(*pool, target, quiet=True).sample_weight(pool[1])
    kept = {name: float((weight > 0).mean()) for name, weight in weights.items()}
    sample = _unit(pool[0][rows], "pool"), pool[1][rows]
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
    """Scores on hidden images with this selection; None if nothing can be learned from it."""
    known_labels, is_old = problem
    is_seen, is_used = known_labels != UNLABELED, weight > 0
    n_seen, used = int(is_seen.sum()), weight[is_used]
    shares = np.concatenate([np.full(n_seen, 1 / n_seen), POOL_SHARE * used / used.sum()])
    features = np.concatenate([source.own[is_seen], pool[0][is_used]])
    # own and pool classes may have equal numbers
    labels = np.concatenate([2 * known_labels[is_seen], 2 * pool[1][is_used] + 1])
    everything = np.concatenate([source.own, source.target])
    try:
        seen = discriminant_features(features, labels, everything, shares)
    except DegenerateError:
        return None
    given = np.concatenate([known_labels, np.full(len(source.target), UNLABELED)])
    n_clusters = max(n_categories, source.n_classes)
    clusters = SemiSupKMeans(n_clusters, n_init=N_INIT, seed=seed).fit(seen, given).labels_
    of_hidden = np.asarray(clusters[: len(source.own)])[~is_seen]
    return evaluate(source.own_labels[~is_seen], of_hidden, is_old[~is_seen], n_resamples=0)


# the label of each own image, -1 if it is hidden, and whether other images of its class keep their label
HiddenProblem = tuple[Int[Array, " own"], Bool[Array, " own"]]


@dataclass(frozen=True)
class HiddenClasses:
    """The source of problems: labeled images of the target's own classes, and unlabeled images of the target."""

    own: Float[Array, "own dim"]
    own_labels: Int[Array, " own"]
    target: Float[Array, "target dim"]
    seed: int

    @property
    def n_classes(self) -> int:
        """Number of own classes."""
        return len(np.unique(self.own_labels))

    @property
    def n_hidden(self) -> int:
        """Number of classes that a draw hides."""
        return self.n_classes // 2

    def draw(self, number: int) -> HiddenProblem:
        """Problem `number`: half of the classes are hidden, and half of the images of the others."""
        draws = generator(self.seed, "hidden classes", number)
        classes = draws.permutation(np.unique(self.own_labels))
        is_new = np.isin(self.own_labels, classes[: self.n_hidden])
        is_hidden = is_new.copy()
        for label in classes[self.n_hidden :]:
            rows = draws.permutation(np.flatnonzero(self.own_labels == label))
            is_hidden[rows[: len(rows) // 2]] = True
        return np.where(is_hidden, UNLABELED, self.own_labels), ~is_new


def hidden_classes(
    own: Float[Array, "own dim"], labels: Int[Array, " own"], target: Float[Array, "target dim"], seed: int
) -> HiddenClasses:
    """The images to draw problems from, with features scaled to length 1."""
    rows = sampled_rows(labels, seed, "own")
    if (n_classes := len(np.unique(labels[rows]))) < LEAST_CLASSES:
        raise DegenerateError(
            f"{n_classes} own classes with at least {LEAST_IMAGES} labeled images",
            expected=f"at least {LEAST_CLASSES}: half of them are hidden and then discovered",
            advice="more labeled images of the target's own classes, or name a selector",
        )
    sample = np.sort(generator(seed, "diagnosis target").permutation(len(target))[:MAX_TARGET])
    return HiddenClasses(_unit(own[rows], "own"), labels[rows], _unit(target[sample], "target"), seed)


def sampled_rows(labels: Labels, seed: int, what: str) -> Int[Array, " rows"]:
    """Rows of at most MAX_PER_CLASS images of at most MAX_CLASSES classes; classes with too few images are left out."""
    classes, counts = np.unique(labels, return_counts=True)
    classes = classes[counts >= LEAST_IMAGES]
    if len(classes) > MAX_CLASSES:
        classes = generator(seed, "diagnosis classes", what).choice(classes, MAX_CLASSES, replace=False)
    rows = []
    for label in classes:
        members = np.flatnonzero(labels == label)
        rows.append(generator(seed, "diagnosis images", what, int(label)).permutation(members)[:MAX_PER_CLASS])
    return np.sort(np.concatenate(rows)) if rows else np.zeros(0, dtype=np.int64)


def _unit(features: Float[Array, "images dim"], what: str) -> Float[Array, "images dim"]:
    features = check_features(features, what, min_images=0)
    check_directions(features, what)
    return unit_rows(features)


def discriminant_features(
    pool: Float[Array, "pool dim"],
    labels: Int[Array, " pool"],
    target: Float[Array, "target dim"],
    sample_weight: Float[Array, " pool"] | None = None,
) -> Float[Array, "target seen"]:
    """The target along linear discriminants of the pool's classes, each scaled by how well it separates them.

    With W the scatter within classes and B between them, both weighted and W shrunk by (1 - s) W + s tr(W) / dim I,
    the generalized eigenvectors B v = l W v with l > 0 give features sqrt(l / (1 + l)) v . (x - mean): directions
    without information about the classes fade, as they do in a network trained on them.
    """
    weight = np.ones(len(pool)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    is_used = weight > 0
    pool, labels, weight = pool[is_used].astype(np.float64), labels[is_used], weight[is_used]
    classes, position = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise DegenerateError(f"{len(classes)} class of positive weight", expected="at least 2 to discriminate")
    share = weight / weight.sum()
    mean = share @ pool
    class_share = np.bincount(position, share)
    centroids = np.stack([share[position == c] @ pool[position == c] for c in range(len(classes))])
    centroids /= class_share[:, None]
    residual = (pool - centroids[position]) * np.sqrt(share)[:, None]
    within = residual.T @ residual
    sphere = np.trace(within) / len(within)
    if not sphere > 0:
        raise DegenerateError("every class consists of copies of one feature", expected="features that vary")
    within = (1 - SHRINKAGE) * within + SHRINKAGE * sphere * np.eye(len(within))
    # After whitening by W the discriminants are the singular vectors of the whitened centroids.
    spread, axes = np.linalg.eigh(within)
    whiten = axes / np.sqrt(spread)
    between = ((centroids - mean) @ whiten) * np.sqrt(class_share)[:, None]
    _, strength, directions = np.linalg.svd(between, full_matrices=False)
    is_real = strength > 1e-8 * strength[0]
    gain = strength[is_real] / np.sqrt(1 + strength[is_real] ** 2)
    return np.asarray(((target - mean) @ whiten @ directions[is_real].T) * gain)
