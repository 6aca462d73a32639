"""Does the pool help? A test on hidden classes of the target's own labels, without any label of the target."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from justright.clustering import SemiSupKMeans
from justright.evaluation import Counts, match_counts
from justright.evaluation.intervals import MeanDifference, mean_difference
from justright.geometry import unit_rows
from justright.selection.shards import checked_features
from justright.utils.context import track
from justright.utils.errors import DegenerateError
from justright.utils.seeding import generator
from justright.utils.types import UNLABELED, Array, Labels

LabeledFeatures = tuple[Float[Array, "_ _"], Int[Array, " _"]]  # features, and a label each
OWN, EVERYTHING = "own", "none"  # the two selectors that are compared
TITLES = {OWN: "own (no pool)", EVERYTHING: "none (the whole pool)"}
CAVEAT = (
    "Linear discriminants replace a trained network, and hidden classes of your own replace unknown ones. "
    "Only whether to use the pool is tested: such a test cannot tell which selection from it is best."
)
AHEAD = 7 / 8  # the pool is used unless own labels alone are better in this share of the draws: less is mostly luck
N_DRAWS = 16
N_INIT = 2  # starts of k-means
POOL_SHARE = 0.5  # total weight of the pool when features are learned, where that of the own labels is 1
SHRINKAGE = 0.1  # share of a plain sphere mixed into the scatter within classes, so that it can be inverted

# beyond these numbers images and classes are drawn at random, to keep each of the many problems small
MAX_PER_CLASS, MAX_CLASSES, MAX_TARGET = 50, 400, 4_000
LEAST_IMAGES, LEAST_CLASSES = 4, 4  # with fewer, half of them would be too few to learn from or to discover


@dataclass(frozen=True)
class Diagnosis:
    """Whether to use the pool, and why."""

    winner: str  # OWN or EVERYTHING, the name of a selector
    verdict: str  # a sentence with the reason
    how: str  # a sentence about the method
    own: float  # mean accuracy on hidden images without the pool
    everything: float  # and with all of it
    difference: MeanDifference
    n_better: int  # draws in which the pool is better
    n_draws: int
    caveat: str = CAVEAT

    @staticmethod
    def of(own: Float[Array, " draws"], everything: Float[Array, " draws"], n_classes: int) -> Diagnosis:
        """Summarize the accuracies of both settings; each draw hid half of `n_classes`."""
        n_draws, n_hidden = len(own), n_classes // 2
        # draws share classes: Nadeau and Bengio (2003) widen the interval by hidden over remaining
        difference = mean_difference(everything - own, overlap=n_hidden / (n_classes - n_hidden))
        n_better, n_worse = int((everything > own).sum()), int((everything < own).sum())
        winner = OWN if n_worse >= AHEAD * n_draws else EVERYTHING
        ahead = f"own labels are ahead in {n_worse}" if winner == OWN else f"the pool is ahead in {n_better}"
        right, without = float(everything.mean()), float(own.mean())
        verdict = (
            f"Take {TITLES[winner]}: with the pool {100 * right:.1f} % of hidden images are right, without it "
            f"{100 * without:.1f} %, a difference of {difference} points; {ahead} of {n_draws} draws."
        )
        how = (
            f"{n_draws} draws, in each of which {n_hidden} of your {n_classes} labeled classes were hidden and "
            "rediscovered; the interval is at 95 %."
        )
        return Diagnosis(winner, verdict, how, without, right, difference, n_better, n_draws)

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return asdict(self)


def diagnose(
    own: LabeledFeatures,
    pool: LabeledFeatures,
    target: Float[Array, "target dim"],
    n_categories: int,
    n_draws: int = N_DRAWS,
    seed: int = 0,
) -> Diagnosis:
    """Test discovery without the pool and with all of it, on problems whose answer is known.

    In each draw half of the target's own labeled classes are hidden (`hide_classes`). Linear discriminants of the
    remaining labels and of the pool replace training; then semi-supervised k-means with `n_categories` clusters over
    own and target images discovers the hidden classes. Both settings get the same draws, so differences are paired.

    Parameters:
        own: features and labels of the target's own classes.
        pool: features and labels of other classes.
        target: features of the unlabeled images.
        n_categories: number of categories in the target, K.
        n_draws: number of problems with hidden classes.
    """
    if n_draws < 2:
        raise DegenerateError(f"{n_draws} draws", expected="at least 2, to estimate how much draws differ")
    x, y = sampled(*own, seed, "own")
    pool_x, pool_y = sampled(*pool, seed, "pool")
    if (n_classes := len(np.unique(y))) < LEAST_CLASSES or not len(pool_y):
        raise DegenerateError(
            f"{n_classes} own classes and {len(np.unique(pool_y))} of the pool with at least {LEAST_IMAGES} images",
            expected=f"at least {LEAST_CLASSES} own classes, half of which are hidden and then discovered, and a pool",
            advice="more labeled images of the target's own classes, or name a selector",
        )
    rows = np.sort(generator(seed, "diagnosis target").permutation(len(target))[:MAX_TARGET])
    everything = np.concatenate([x, unit_rows(checked_features(target[rows], "target"))])
    scores: dict[str, list[float]] = {OWN: [], EVERYTHING: []}
    for number in track(range(n_draws), n_draws, "draws of hidden classes"):
        known = hide_classes(y, generator(seed, "hidden classes", number))
        is_seen = known != UNLABELED
        given = np.concatenate([known, np.full(len(rows), UNLABELED)])
        for name, accuracies in scores.items():
            share = POOL_SHARE if name == EVERYTHING else 0.0
            weight = np.concatenate([is_seen / is_seen.sum(), np.full(len(pool_y), share / len(pool_y))])
            labels = np.concatenate([2 * known, 2 * pool_y + 1])  # own and pool classes may have equal numbers
            seen = discriminant_features(np.concatenate([x, pool_x]), labels, everything, weight)
            kmeans = SemiSupKMeans(max(n_categories, n_classes), n_init=N_INIT, seed=seed + number)
            clusters = kmeans.fit(seen, given).labels_[: len(y)]
            accuracies.append(match_counts(Counts.of(y[~is_seen], clusters[~is_seen])).accuracy)
    return Diagnosis.of(np.array(scores[OWN]), np.array(scores[EVERYTHING]), n_classes)


def hide_classes(labels: Int[Array, " own"], draws: np.random.Generator) -> Int[Array, " own"]:
    """The labels with half of the classes hidden, and half of the images of the others: -1."""
    classes = draws.permutation(np.unique(labels))
    n_hidden = len(classes) // 2
    is_hidden = np.isin(labels, classes[:n_hidden])
    for label in classes[n_hidden:]:
        rows = draws.permutation(np.flatnonzero(labels == label))
        is_hidden[rows[: len(rows) // 2]] = True
    return np.where(is_hidden, UNLABELED, labels)


def sampled(features: Float[Array, "_ _"], labels: Labels, seed: int, what: str) -> LabeledFeatures:
    """At most MAX_PER_CLASS images of at most MAX_CLASSES classes, at length 1; tiny classes are left out."""
    classes, counts = np.unique(labels, return_counts=True)
    classes = classes[counts >= LEAST_IMAGES]
    if len(classes) > MAX_CLASSES:
        classes = generator(seed, "diagnosis classes", what).choice(classes, MAX_CLASSES, replace=False)
    rows = [np.zeros(0, dtype=np.int64)]
    for label in classes:
        members = np.flatnonzero(labels == label)
        rows.append(generator(seed, "diagnosis images", what, int(label)).permutation(members)[:MAX_PER_CLASS])
    kept = np.sort(np.concatenate(rows))
    return unit_rows(checked_features(features[kept], what)), labels[kept]


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
    from scipy.linalg import eigh  # slow to import

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
    around = (centroids - mean) * np.sqrt(class_share)[:, None]
    strength, directions = eigh(around.T @ around, within)
    is_real = strength > 1e-10 * strength[-1]
    gain = np.sqrt(strength[is_real] / (1 + strength[is_real]))
    return np.asarray((target - mean) @ directions[:, is_real] * gain)
