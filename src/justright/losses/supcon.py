"""The supervised contrastive loss, where each image counts as much as its weight says."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor, nn

from justright.losses.pairs import pair_logits
from justright.losses.reduction import labeled_mean
from justright.losses.settings import ContrastiveSettings
from justright.types import UNLABELED


class WeightedSupConLoss(nn.Module):
    """Pull images of one class together, each anchor counted by its weight. Eq. 2, and again as Eq. 17 for GCD.

    mean_i  w_i * mean_{p in N_i}  -log softmax_{n != i}(z_i . z_n / tau_s)[p]

    i and n run over all views of the labeled images B_l, N_i are the others with the label of i, and z has length 1.
    An image of weight 0 is no anchor, yet stays among the positives and negatives of the others.
    """

    def __init__(self, temperature_sup: float = ContrastiveSettings.temperature_sup):
        super().__init__()
        self.temperature_sup = temperature_sup

    def forward(
        self,
        projections: Float[Tensor, "views batch dim"],
        labels: Int[Tensor, " batch"],
        weight: Float[Tensor, " batch"],
    ) -> Float[Tensor, ""]:
        """The weighted mean over all views of the labeled images; 0 if there are none."""
        return labeled_mean(self.per_image(projections, labels), labels, weight)

    def per_image(
        self, projections: Float[Tensor, "views batch dim"], labels: Int[Tensor, " batch"]
    ) -> Float[Tensor, "views batch"]:
        """One value for each view of each image, not weighted yet; 0 for an unlabeled image."""
        is_labeled = labels != UNLABELED
        rows = projections[:, is_labeled]
        n_views, n_labeled = rows.shape[:2]
        classes = labels[is_labeled].repeat(n_views)
        logits = pair_logits(rows.flatten(0, 1), self.temperature_sup)  # (views * labeled, views * labeled)
        positive = classes[:, None] == classes
        positive.fill_diagonal_(False)
        log_p = logits.log_softmax(dim=1).masked_fill(~positive, 0.0)
        # Two views make sure of a positive; with one view, an image alone in its class has nothing to be pulled to.
        per_anchor = -log_p.sum(dim=1) / positive.sum(dim=1).clamp(min=1)
        values = per_anchor.new_zeros(projections.shape[:2])
        values[:, is_labeled] = per_anchor.view(n_views, n_labeled)
        return values
