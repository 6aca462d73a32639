"""Which images make up each batch: labeled and unlabeled in equal parts, or labeled ones by their weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from justright.errors import DataError
from justright.seeding import generator
from justright.types import Array


@dataclass(frozen=True, eq=False)
class BalancedBatches:
    """Batches drawn with replacement, half of each labeled in expectation, as in GCD, XCon and SimGCD.

    Every labeled image weighs 1 and every unlabeled one n_labeled / n_unlabeled. With `chance` labeled images are drawn
    in proportion to it (resampling, Tab. A2), and labeled and unlabeled ones stay balanced. What an epoch draws is a
    function of seed, purpose and epoch alone.

    Parameters:
        labeled, unlabeled: rows of the images.
        batch_size: images a batch.
        seed, purpose: what is drawn depends on these and the epoch.
        chance: one entry a labeled row, or None for equal chances.
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
        if self.chance is not None and not self._is_drawable(self.chance):
            raise DataError(
                f"{len(self.chance)} chances for {len(self.labeled)} labeled images",
                expected="one each, none below 0 and not all of them 0",
            )

    def _is_drawable(self, chance: Float[Array, " chances"]) -> bool:
        if len(chance) != len(self.labeled):
            return False
        return bool(np.isfinite(chance).all() and (chance >= 0).all() and (chance.any() or not len(chance)))

    def __len__(self) -> int:
        return len(self.labeled) + len(self.unlabeled)

    @property
    def n_steps(self) -> int:
        """Batches an epoch: as many as are full, at least one."""
        return max(1, len(self) // self.batch_size)

    def rows(self, epoch: int, n_steps: int | None = None) -> Int[Array, "steps batch"]:
        """The rows of every batch of an epoch, of `n_steps` batches if another loader sets the pace."""
        shape = (n_steps or self.n_steps, self.batch_size)
        total = np.cumsum(self._share())
        drawn = generator(self.seed, self.purpose, epoch).random(shape) * total[-1]
        # rounding may carry a draw to the very end of the last interval
        place = np.minimum(np.searchsorted(total, drawn, side="right"), len(total) - 1)
        return np.concatenate([self.labeled, self.unlabeled])[place]

    def _share(self) -> Float[Array, " images"]:
        """How often each row is drawn, in some unit."""
        n_labeled, n_unlabeled = len(self.labeled), len(self.unlabeled)
        labeled = np.ones(n_labeled)
        if self.chance is not None and n_labeled:
            labeled = np.asarray(self.chance, dtype=np.float64) / np.mean(self.chance)
        # without labeled images, such as in a subset of XCon, the unlabeled ones are all there is
        of_unlabeled = n_labeled / n_unlabeled if n_labeled and n_unlabeled else 1.0
        return np.concatenate([labeled, np.full(n_unlabeled, of_unlabeled)])
