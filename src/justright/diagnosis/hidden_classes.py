"""Problems whose answer is known: some of the target's own labeled classes are hidden, to be found again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from justright.geometry import unit_rows
from justright.utils.errors import DegenerateError
from justright.utils.seeding import generator
from justright.utils.types import UNLABELED, Array, Labels

# beyond these numbers images and classes are drawn at random, to keep each of the many problems small
MAX_PER_CLASS, MAX_CLASSES, MAX_TARGET = 50, 400, 4_000
LEAST_IMAGES, LEAST_CLASSES = 4, 4  # with fewer, half of them would be too few to learn from or to find again


# the label of each own image, -1 where it is hidden, and whether other images of its class keep theirs
HiddenProblem = tuple[Int[Array, " own"], Bool[Array, " own"]]


@dataclass(frozen=True)
class HiddenClasses:
    """What problems are drawn from: labeled images of the target's own classes, and unlabeled images of the target."""

    own: Float[Array, "own dim"]
    own_labels: Int[Array, " own"]
    target: Float[Array, "target dim"]
    seed: int

    @property
    def n_classes(self) -> int:
        """Number of own classes that problems are drawn from."""
        return len(np.unique(self.own_labels))

    @property
    def n_hidden(self) -> int:
        """Number of classes that a draw hides."""
        return self.n_classes // 2

    def draw(self, number: int) -> HiddenProblem:
        """Problem `number`: half of the classes are hidden whole, and half of the images of the others."""
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
    """The images to draw problems from, at most so many, with features brought to length 1."""
    rows = sampled_rows(labels, seed, "own")
    if (n_classes := len(np.unique(labels[rows]))) < LEAST_CLASSES:
        raise DegenerateError(
            f"{n_classes} own classes with at least {LEAST_IMAGES} labeled images",
            expected=f"at least {LEAST_CLASSES}: half of them are hidden and to be found again",
            advice="more labeled images of the target's own classes, or name a selector",
        )
    sample = np.sort(generator(seed, "diagnosis target").permutation(len(target))[:MAX_TARGET])
    return HiddenClasses(unit_rows(own[rows]), labels[rows], unit_rows(target[sample]), seed)


def sampled_rows(labels: Labels, seed: int, what: str) -> Int[Array, " rows"]:
    """Rows of at most so many images of at most so many classes; classes with too few images are left out."""
    classes, counts = np.unique(labels, return_counts=True)
    classes = classes[counts >= LEAST_IMAGES]
    if len(classes) > MAX_CLASSES:
        classes = generator(seed, "diagnosis classes", what).choice(classes, MAX_CLASSES, replace=False)
    rows = []
    for label in classes:
        members = np.flatnonzero(labels == label)
        rows.append(generator(seed, "diagnosis images", what, int(label)).permutation(members)[:MAX_PER_CLASS])
    return np.sort(np.concatenate(rows)) if rows else np.zeros(0, dtype=np.int64)
