"""Random batches: half labeled and half unlabeled images, labeled ones perhaps by weight."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from justright.utils.errors import DataError
from justright.utils.seeding import generator
from justright.utils.types import Array

DRAWS_PER_COUNT = 4  # random numbers that the generator makes at each step of its counter


@dataclass(frozen=True, eq=False)
class BalancedBatches:
    """Batches drawn with replacement, half of each labeled in expectation, as in GCD, XCon and SimGCD.

    Every labeled image weighs 1 and every unlabeled one n_labeled / n_unlabeled. With `chance` labeled images are drawn
    in proportion to it (resampling, Tab. A2), and labeled and unlabeled ones stay balanced. The batches depend on seed,
    purpose and epoch only.

    Parameters:
        labeled, unlabeled: rows of the images.
        chance: one number per labeled row, not all of them 0, or None for equal chances.
    """

    labeled: Int[Array, " labeled"]
    unlabeled: Int[Array, " unlabeled"]
    batch_size: int
    seed: int = 0
    purpose: str = "batches"
    chance: Float[Array, " labeled"] | None = None

    def __post_init__(self) -> None:
        if not len(self) or self.batch_size < 1:
            raise DataError(f"{len(self)} images in batches of {self.batch_size}", expected="at least one of both")

    def __len__(self) -> int:
        return len(self.labeled) + len(self.unlabeled)

    @property
    def n_steps(self) -> int:
        """Full batches per epoch, at least one."""
        return max(1, len(self) // self.batch_size)

    def rows(self, epoch: int, n_steps: int | None = None, first: int = 0) -> Int[Array, "steps batch"]:
        """The rows of the batches of an epoch: all, or `n_steps` of them from step `first` on."""
        rng = generator(self.seed, self.purpose, epoch)
        n_before = first * self.batch_size
        rng.bit_generator.advance(n_before // DRAWS_PER_COUNT)  # type: ignore[attr-defined]
        rng.random(n_before % DRAWS_PER_COUNT)
        drawn = rng.random((n_steps or self.n_steps, self.batch_size)) * self._cumulative_weight[-1]
        # rounding may carry a draw to the very end of the last interval
        index = np.minimum(np.searchsorted(self._cumulative_weight, drawn, side="right"), len(self) - 1)
        is_labeled = index < len(self.labeled)
        rows = np.empty_like(index)
        rows[is_labeled] = self.labeled[index[is_labeled]]
        rows[~is_labeled] = self.unlabeled[index[~is_labeled] - len(self.labeled)]
        return rows

    @cached_property
    def _cumulative_weight(self) -> Float[Array, " images"]:
        """Cumulative sum of the weights of the rows, labeled ones first."""
        n_labeled, n_unlabeled = len(self.labeled), len(self.unlabeled)
        labeled = np.ones(n_labeled)
        if self.chance is not None and n_labeled:
            labeled = np.asarray(self.chance, dtype=np.float64) / np.mean(self.chance)
        # a subset of XCon may hold no labeled images
        unlabeled_weight = n_labeled / n_unlabeled if n_labeled and n_unlabeled else 1.0
        return np.cumsum(np.concatenate([labeled, np.full(n_unlabeled, unlabeled_weight)]))
