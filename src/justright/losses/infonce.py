"""The self-supervised contrastive loss: an image is its own class."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from justright.losses.pairs import pair_logits
from justright.losses.settings import ContrastiveSettings


class SelfContrastiveLoss(nn.Module):
    """Pull the two views of an image together and apart from every other image. Eq. 1, and again as Eq. 16 for GCD.

    mean_i  -log softmax_{n != i}(z_i . z_n / tau_u)[i']

    i runs over both views of the images of B, labeled ones included, i' is the other view of i, n the other 2|B| - 1
    rows, and z has length 1. The paper prints one direction, from one view to the other; every public code is
    symmetric, as here. Weights do not act on it.
    """

    def __init__(self, temperature_unsup: float = ContrastiveSettings.temperature_unsup):
        super().__init__()
        self.temperature_unsup = temperature_unsup

    def forward(self, projections: Float[Tensor, "2 batch dim"]) -> Float[Tensor, ""]:
        """The mean over both views of all images."""
        return self.per_image(projections).mean()

    def per_image(self, projections: Float[Tensor, "2 batch dim"]) -> Float[Tensor, "2 batch"]:
        """One value for each view of each image."""
        n_images = projections.shape[1]
        logits = pair_logits(projections.flatten(0, 1), self.temperature_unsup)  # (2 * batch, 2 * batch)
        other_view = torch.arange(2 * n_images, device=logits.device).roll(n_images)
        return -logits.log_softmax(dim=1).gather(1, other_view[:, None]).view(2, n_images)
