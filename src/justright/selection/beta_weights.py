"""From similarities to weights and to words: the steps after the cosines."""

from __future__ import annotations

import logging
import math

import numpy as np
from jaxtyping import Float, Int

from justright.errors import DegenerateError, NothingSelectedError
from justright.geometry import beta_density, to_unit_interval
from justright.selection.harden import harden
from justright.types import Array

logger = logging.getLogger(__name__)

TINY_WEIGHT = 1e-3
TINY_SHARE = 0.9


def soft_weights(
    similarity: Float[Array, " n"], alpha: float, beta: float, domain: str, reference: float = math.nan
) -> Float[Array, " n"]:
    """The density at each similarity, finite; a warning is logged where nearly all of it vanishes."""
    # A cosine lives on [-1, 1], the density on [0, 1]: see docs/decisions.md, "beta domain".
    weight = beta_density(to_unit_interval(similarity, domain, reference), alpha, beta)  # Eq. 11
    if not np.all(np.isfinite(weight)):
        raise DegenerateError(
            f"an infinite weight at similarity {similarity[~np.isfinite(weight)][0]:g}",
            expected="alpha and beta of at least 1 where similarities reach the ends of [0, 1]",
            advice="alpha >= 1 and beta >= 1, or domain='rank', which never reaches them",
        )
    tiny_share = float(np.mean(weight < TINY_WEIGHT))
    if tiny_share > TINY_SHARE:
        logger.warning(
            "%.0f%% of the weights are below %g: labels will hardly count; try domain='affine' or normalize='mean'",
            100 * tiny_share,
            TINY_WEIGHT,
        )
    logger.info("mean weight %.4g before threshold and normalization", weight.mean())
    return weight


def final_weights(
    weight: Float[Array, " n"],
    counts: Int[Array, " n"],
    threshold: float | None,
    normalize: str,
    weight_range: tuple[float, float] | None,
) -> Float[Array, " n"]:
    """Threshold or normalize, then clamp. `counts` are the images each weight stands for."""
    if threshold is not None:
        weight = harden(weight, threshold)
    if not np.any(weight > 0):
        raise NothingSelectedError(
            f"all {len(weight)} weights are 0" + ("" if threshold is None else f" at threshold {threshold:g}"),
            expected="at least one class neither too near nor too far",
            advice="domain='affine' or 'rank', reduction='median', or a lower threshold",
        )
    if normalize == "max":
        weight = weight / weight.max()
    elif normalize == "mean":
        weight = weight / np.average(weight, weights=counts)
    return weight if weight_range is None else np.clip(weight, *weight_range)


def peak_similarity(alpha: float, beta: float, domain: str, reference: float = math.nan) -> float | None:
    """The cosine that weighs most, where there is one and the domain does not depend on the other classes."""
    if alpha <= 1 or beta <= 1 or domain in ("minmax", "rank"):
        return None
    mode = (alpha - 1) / (alpha + beta - 2)
    if domain == "target":
        return 2 * mode * reference
    return 2 * mode - 1 if domain == "affine" else mode


def weight_reason(weight: float, similarity: float, peak: float | None, is_hard: bool) -> str:
    """Why a class weighs what it weighs."""
    said = f"similarity {similarity:.2f} weighs {weight:.2f}"
    if weight > 0:
        return f"kept: similarity {similarity:.2f}" if is_hard else said
    if peak is None:
        return f"left out: {said}"
    return f"too {'far' if similarity < peak else 'near'}: {said}"
