"""GCD: contrastive learning with and without labels, then semi-supervised k-means (Vaze et al., CVPR 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from justright.data.batches import BalancedBatches
from justright.discovery.assigner import Learned
from justright.discovery.base import TrainedDiscovery
from justright.discovery.configs import TrainConfig, projection_size
from justright.discovery.learner import BatchLabels, BatchWeights, FitInputs, Learner, Outputs
from justright.features.backbone import Backbone, Stored
from justright.losses import ContrastiveObjective, LossParts
from justright.losses.heads import ProjectionHead
from justright.utils.settings import COUNT, setting

# Length of training for networks without a final norm, where more steps did not help; chosen on pets and leaves,
# docs/research/training.md
STEPS_ON_ACTIVATIONS_PER_CATEGORY, MIN_STEPS_ON_ACTIVATIONS = 5, 200


@dataclass(frozen=True)
class GCDConfig(TrainConfig):
    """GCD, Vaze et al., CVPR 2022."""

    small_settings = {"n_out": None}  # noqa: RUF012

    n_out: int | None = setting(65536, "size of a layer after the head, as in the public code", COUNT.or_none())

    def head_size(self, dim: int, n_categories: int) -> int:
        """Parameters of the projection head and the layer after it."""
        return projection_size(dim, self.hidden_dim, self.out_dim, self.n_out)

    def min_steps(self, n_categories: int, ends_in_norm: bool) -> int:
        """Fewer steps for pooled activations: this training hardly changes their clusters."""
        if ends_in_norm:
            return super().min_steps(n_categories, ends_in_norm)
        return max(MIN_STEPS_ON_ACTIVATIONS, STEPS_ON_ACTIVATIONS_PER_CATEGORY * n_categories)


class GCDLearner(Learner):
    """L = (1 - lambda) L_rep^u + lambda L_rep^s, Eq. 16 and 17, on projections of two weak views.

    CMS and SelEx have other `losses` on the same projections.
    """

    def __init__(self, backbone: Backbone, config: GCDConfig, batches: BalancedBatches, generator: torch.Generator):
        super().__init__(backbone, [batches], config.micro_batch)
        self.projector = ProjectionHead(backbone.dim, config.hidden_dim, config.out_dim, config.n_out, generator)
        self.losses: nn.Module = ContrastiveObjective(config)

    def outputs(self, stored: Mapping[str, Stored], part: int) -> Outputs:
        """Projections of both views."""
        return {"projections": self.projector(self.features(stored["weak"], 2))}

    def objective(self, outputs: Sequence[Outputs], labels: BatchLabels, weight: BatchWeights, epoch: int) -> LossParts:
        """The contrastive losses of the batch."""
        return self.losses(outputs[0]["projections"], labels[0], weight[0])


class GCD(TrainedDiscovery):
    """Tune the last block by the contrastive losses, then cluster its features around the known classes."""

    name = "gcd"
    config_class = GCDConfig

    def _learn(self, inputs: FitInputs) -> Learned:
        batches = inputs.data.batches(self.config_.batch_size, self.seed)
        learner = GCDLearner(inputs.backbone, self.config_, batches, self._torch_generator("heads"))
        self._train(learner, inputs, self.config_)
        return self._by_clusters(inputs)
