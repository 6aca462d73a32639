"""From similarities to weights and to words: the steps of Beta after the cosines."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from justright.geometry import beta_density, to_unit_interval
from justright.selection.class_weights import Remark
from justright.utils.errors import DegenerateError
from justright.utils.types import Array

TINY_WEIGHT = 1e-3
TINY_SHARE = 0.9
N_POINTS = 800
Values = Float[Array, " n"]


@dataclass(frozen=True)
class BetaCurve:
    """The beta density over cosines, brought to [0, 1] by a domain; `reference` is r of the domain "target"."""

    alpha: float
    beta: float
    domain: str
    reference: float = math.nan

    def density(self, similarity: Values) -> Values:
        """The density at each similarity; infinite at a pole."""
        # A cosine lives on [-1, 1], the density on [0, 1]: see docs/decisions.md, "beta domain".
        return beta_density(to_unit_interval(similarity, self.domain, self.reference), self.alpha, self.beta)  # Eq. 11

    def soft_weights(self, similarity: Values) -> Values:
        """The density at each similarity; a pole is an error."""
        weight = self.density(similarity)
        if len(at := similarity[~np.isfinite(weight)]):
            raise DegenerateError(
                f"an infinite weight at similarity {at[0]:g}",
                expected="alpha and beta of at least 1 where similarities reach the ends of [0, 1]",
                advice="alpha >= 1 and beta >= 1, or domain='rank', which never reaches them",
            )
        return weight

    def peak(self) -> float | None:
        """The cosine that weighs most, where there is one and the domain does not depend on the other classes."""
        if self.alpha <= 1 or self.beta <= 1 or self.domain in ("minmax", "rank"):
            return None
        mode = (self.alpha - 1) / (self.alpha + self.beta - 2)
        if self.domain == "target":
            return 2 * mode * self.reference
        return 2 * mode - 1 if self.domain == "affine" else mode

    def points(self, similarity: Float[Array, " classes"]) -> tuple[Float[Array, " points"], Float[Array, " points"]]:
        """Similarities in order and the density there, to draw; `similarity` is that of the classes."""
        if self.domain == "rank":  # known at the classes only
            grid = np.sort(similarity)
        elif self.domain == "minmax":
            grid = np.linspace(similarity.min(), similarity.max(), N_POINTS)
        else:
            grid = np.linspace(-1.0 if self.domain == "affine" else min(0.0, float(similarity.min())), 1.0, N_POINTS)
        return grid, self.density(grid)


def harden(weight: Values, threshold: float) -> Values:
    """1 where the weight exceeds the threshold, else 0 (Tab. 6).

    The threshold belongs to the weights as the density gives them, before any normalization.
    """
    return (weight > threshold).astype(np.float64)


def remarks_about(weight: Values) -> tuple[Remark, ...]:
    """A remark where nearly all weights, as the density gives them, vanish."""
    share = float(np.mean(weight < TINY_WEIGHT))
    if share <= TINY_SHARE:
        return ()
    said = f"{100 * share:.0f}% of the weights are below {TINY_WEIGHT:g}: labels will hardly count"
    return (Remark(said, {"domain": "affine", "normalize": "mean"}),)


def weight_reasons(weight: Values, similarity: Values, peak: float | None, is_hard: bool) -> list[str]:
    """Why each class or image weighs what it weighs."""
    reasons = []
    for w, s in zip(weight.tolist(), similarity.tolist(), strict=True):
        said = f"similarity {s:.2f} weighs {w:.2f}"
        if w > 0:
            reasons.append(f"kept: similarity {s:.2f}" if is_hard else said)
        else:
            reasons.append(f"{'left out' if peak is None else 'too far' if s < peak else 'too near'}: {said}")
    return reasons
