"""GCD: contrastive learning with and without labels, then semi-supervised k-means (Vaze et al., CVPR 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from justright.data.batches import BalancedBatches
from justright.discovery.assigner import CategoryAssigner
from justright.discovery.clusters import clusters_of
from justright.discovery.configs import GCDConfig, TrainConfig
from justright.discovery.learner import Learner, Outputs
from justright.discovery.trained import TrainedDiscovery
from justright.discovery.training_data import TrainingData
from justright.features.backbone import Backbone, Stored
from justright.features.stored_views import Views
from justright.losses import ContrastiveObjective, LossParts
from justright.models import ProjectionHead
from justright.progress import Track
from justright.types import Array


def balanced_batches(data: TrainingData, batch_size: int, seed: int) -> BalancedBatches:
    """Batches over all images that learning sees."""
    labeled = data.labeled
    chance = None if data.chance is None else data.chance[labeled]
    return BalancedBatches(labeled, data.unlabeled, batch_size, seed, chance=chance)


def contrastive_objective(config: TrainConfig) -> ContrastiveObjective:
    """Eq. 1 and 2 in the shares of a config."""
    return ContrastiveObjective(
        supervised_share=config.supervised_share,
        temperature_unsup=config.temperature_unsup,
        temperature_sup=config.temperature_sup,
    )


def projection_head(backbone: Backbone, config: GCDConfig, generator: torch.Generator) -> ProjectionHead:
    """The head through which the contrastive losses look."""
    return ProjectionHead(backbone.dim, config.hidden_dim, config.out_dim, config.n_out, generator)


class GCDLearner(Learner):
    """L = (1 - lambda) L_rep^u + lambda L_rep^s, Eq. 16 and 17, on projections of two weak views."""

    def __init__(self, backbone: Backbone, config: GCDConfig, batches: BalancedBatches, generator: torch.Generator):
        super().__init__(backbone, config.micro_batch)
        self.batches = (batches,)
        self.projector = projection_head(backbone, config, generator)
        self.losses = contrastive_objective(config)

    def outputs(self, stored: Mapping[str, Stored], part: int) -> Outputs:
        """Projections of both views."""
        return {"projections": self.projector(self.features(stored["weak"], 2))}

    def objective(
        self,
        outputs: Sequence[Outputs],
        labels: Sequence[Int[Tensor, " _"]],
        weight: Sequence[Float[Tensor, " _"]],
        epoch: int,
    ) -> LossParts:
        """The contrastive losses of the batch."""
        return self.losses(outputs[0]["projections"], labels[0], weight[0])


class GCD(TrainedDiscovery):
    """Tune the last block by the contrastive losses, then cluster its features around the known classes."""

    name = "gcd"
    config_class = GCDConfig

    def _learn(self, data: TrainingData, plain: Views, track: Track) -> None:
        batches = balanced_batches(data, self.config.batch_size, self.seed)
        learner = GCDLearner(self.backbone_, self.config, batches, self._torch_generator("heads"))
        self._train(learner, data, plain, self.config, self.folder, track)

    def _assign(
        self, data: TrainingData, features: Float[Array, "images dim"]
    ) -> tuple[CategoryAssigner, Int[Array, " target"]]:
        return clusters_of(data, features, self.n_categories, self.config.n_init, self.seed)
