"""Shared by all losses: their precision, and the weighted mean over images."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from justright.utils.errors import DataError
from justright.utils.types import UNLABELED

Labels = Int[Tensor, " batch"]  # the class of each image of a batch, -1 for an unlabeled one
Weights = Float[Tensor, " batch"]  # how much each of them counts
Scalar = Float[Tensor, ""]
Projections = Float[Tensor, "2 batch dim"]


class LossParts(NamedTuple):
    """The loss of a step, and its terms for the log, unscaled and without gradient."""

    total: Scalar
    terms: dict[str, Tensor]


def at_least_float32(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Convert half precision to single; keep other numbers."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def expect_views(projections: Tensor, n_views: int | None = None) -> None:
    """Raise unless the axes are views, images and dimensions; `n_views` is their number if it is fixed."""
    if projections.ndim != 3 or n_views not in (None, len(projections)):
        raise DataError(
            f"projections of shape {tuple(projections.shape)}",
            expected=f"{n_views or 'views'} x images x dimensions",
            advice="torch.stack([first_view, second_view])",
        )


def labeled_mean(values: Float[Tensor, "views batch"], labels: Labels, weight: Weights | None = None) -> Scalar:
    """The weighted mean over the views of the labeled images B_l. Weights act only here; without them each is 1.

    1 / (views |B_l|) * sum_{i in B_l} w_i v_i

    Divided by how many there are, not by the sum of their weights, so that halving every weight halves the loss.
    The weight of an unlabeled image is not read. Without labeled images the mean is 0, and its gradient is 0 as well.
    """
    is_labeled = labels != UNLABELED
    weight = torch.ones_like(labels, dtype=values.dtype) if weight is None else weight
    n_rows = len(values) * is_labeled.sum().clamp(min=1)
    # `where` instead of a factor 0, which would turn values and weights that are not finite into NaN
    weight, values = torch.where(is_labeled, weight, 0.0).to(values.dtype), torch.where(is_labeled, values, 0.0)
    return (weight * values).sum() / n_rows
