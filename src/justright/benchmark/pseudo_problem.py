"""A discovery problem whose answer is known: some classes of the pool play the target's part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from justright.errors import DegenerateError
from justright.geometry import class_centroids, quantile_similarity
from justright.seeding import generator
from justright.types import Array, Features, Labels

MAX_CLASSES = 300
MAX_PER_CLASS = 50
MAX_TARGET = 5_000
"""Beyond these, classes and images are drawn at random: a diagnosis is many small problems rather than a large one."""

NEW_SHARE = 0.2
MOST_NEW = 50
LEAST_IMAGES = 4
"""A class with fewer images cannot be halved into something to learn from and something to find."""

LOOKS_LIKE = 0.99
"""A class is as similar to the target as its centroid is to the nearest hundredth of the target's images."""


@dataclass(frozen=True)
class PseudoProblem:
    """Labeled and unlabeled features, and what nobody but the judge may look at: `truth` and `is_old`."""

    pool: Float[Array, "pool dim"]
    pool_labels: Int[Array, " pool"]
    target: Float[Array, "target dim"]
    truth: Int[Array, " target"]
    is_old: Bool[Array, " target"]

    @property
    def n_categories(self) -> int:
        """Classes in the pseudo-target."""
        return len(np.unique(self.truth))


@dataclass(frozen=True)
class ProblemSource:
    """The part of a pool that problems are drawn from; `candidates` are the classes that may play the target's part."""

    features: Features
    labels: Labels
    candidates: Int[Array, " candidates"]
    n_new: int
    seed: int

    @property
    def n_classes(self) -> int:
        """Classes in play."""
        return len(np.unique(self.labels))

    def draw(self, number: int) -> PseudoProblem:
        """Problem `number`: some candidates are new, as many are old.

        All images of a new class and a random half of those of an old class make up the pseudo-target; the rest of
        the pool, the other halves included, is the pseudo-pool.
        """
        draws = generator(self.seed, "pseudo-problem", number)
        chosen = draws.permutation(self.candidates)[: 2 * self.n_new]
        new, old = chosen[: self.n_new], chosen[self.n_new :]
        is_target = np.isin(self.labels, new)
        for label in old:
            rows = draws.permutation(np.flatnonzero(self.labels == label))
            is_target[rows[: len(rows) // 2]] = True
        return PseudoProblem(
            pool=self.features[~is_target],
            pool_labels=self.labels[~is_target],
            target=self.features[is_target],
            truth=self.labels[is_target],
            is_old=np.isin(self.labels[is_target], old),
        )


def problem_source(features: Features, labels: Labels, target: Float[Array, "target dim"], seed: int) -> ProblemSource:
    """Thin the pool, and let the half of its classes that looks most like the real target play its part.

    A pseudo-target of classes far from the target would answer for another problem. The farther half of the pool
    always stays in the pseudo-pool, where a selector may leave it out.
    """
    rows = _thinned(labels, seed)
    wide = np.result_type(features.dtype, np.float32)  # half precision saves space on disk, not here
    features, labels = np.asarray(features[rows], dtype=wide), labels[rows]
    classes, centroids = class_centroids(features, labels)
    n_new = int(np.clip(NEW_SHARE * len(classes), 2, MOST_NEW))
    if len(classes) < 2 * n_new + 2:
        raise DegenerateError(
            f"{len(classes)} classes with at least {LEAST_IMAGES} images in the pool",
            expected=f"at least {2 * n_new + 2}: {n_new} play new classes, {n_new} old ones, 2 or more are left",
            advice="a larger pool; a small one is best used as a whole",
        )
    sample = np.sort(generator(seed, "diagnosis target").permutation(len(target))[:MAX_TARGET])
    similarity = quantile_similarity(centroids, np.asarray(target[sample], dtype=wide), LOOKS_LIKE)
    n_candidates = max(len(classes) // 2, 2 * n_new)
    nearest = np.sort(np.argsort(-similarity, kind="stable")[:n_candidates])
    return ProblemSource(features, labels, classes[nearest], n_new, seed)


def _thinned(labels: Labels, seed: int) -> Int[Array, " rows"]:
    classes, counts = np.unique(labels, return_counts=True)
    classes = classes[counts >= LEAST_IMAGES]
    if len(classes) > MAX_CLASSES:
        classes = generator(seed, "diagnosis classes").choice(classes, MAX_CLASSES, replace=False)
    rows = []
    for label in classes:
        members = np.flatnonzero(labels == label)
        rows.append(generator(seed, "diagnosis images", int(label)).permutation(members)[:MAX_PER_CLASS])
    return np.sort(np.concatenate(rows)) if rows else np.zeros(0, dtype=np.int64)
