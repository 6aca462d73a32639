"""The cross-entropy of labeled images, where each image counts as much as its weight says."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from justright.losses.reduction import labeled_mean
from justright.losses.settings import SimGCDSettings
from justright.types import UNLABELED


class WeightedCrossEntropy(nn.Module):
    """Teach the classifier the labels it may see, each image counted by its weight. Eq. 4.

    mean_i  w_i * -log softmax(logits_i / temperature_student)[y_i]

    i runs over all views of the labeled images B_l. The logits are the cosines of the prototype classifier.
    """

    def __init__(self, temperature_student: float = SimGCDSettings.temperature_student):
        super().__init__()
        self.temperature_student = temperature_student

    def forward(
        self,
        logits: Float[Tensor, "views batch categories"],
        labels: Int[Tensor, " batch"],
        weight: Float[Tensor, " batch"],
    ) -> Float[Tensor, ""]:
        """The weighted mean over all views of the labeled images; 0 if there are none.

        An image of weight 0 counts among them and adds nothing, so its class need not have a prototype.
        """
        classes = labels.where((labels == UNLABELED) | (weight > 0), 0)
        return labeled_mean(self.per_image(logits, classes), labels, weight)

    def per_image(
        self, logits: Float[Tensor, "views batch categories"], labels: Int[Tensor, " batch"]
    ) -> Float[Tensor, "views batch"]:
        """One value for each view of each image, not weighted yet; 0 for an unlabeled image."""
        n_views, n_images = logits.shape[:2]
        rows = logits.flatten(0, 1).to(torch.promote_types(logits.dtype, torch.float32)) / self.temperature_student
        classes = labels.long().repeat(n_views)
        values = cross_entropy(rows, classes, ignore_index=UNLABELED, reduction="none")
        return values.view(n_views, n_images)
