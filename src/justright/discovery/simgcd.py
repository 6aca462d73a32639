"""SimGCD: representation and classifier at once, the network its own teacher (Wen et al., ICCV 2023)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from justright.data.batches import BalancedBatches
from justright.discovery.assigner import CategoryAssigner
from justright.discovery.configs import SimGCDConfig
from justright.discovery.gcd import balanced_batches
from justright.discovery.learner import Learner, Outputs
from justright.discovery.trained import TrainedDiscovery
from justright.discovery.training_data import TrainingData
from justright.features.backbone import Backbone, Stored
from justright.features.stored_views import Views
from justright.losses import LossParts, SimGCDObjective
from justright.models import ProjectionHead, PrototypeClassifier, teacher_temperature
from justright.progress import Track
from justright.types import Array


class HeadOutputs(NamedTuple):
    """What the two heads give for a feature."""

    projections: Tensor
    logits: Tensor


class Heads(nn.Module):
    """A projection head and a prototype classifier side by side on the feature, its `center` taken off."""

    center: Tensor

    def __init__(
        self,
        dim: int,
        n_categories: int,
        config: SimGCDConfig,
        generator: torch.Generator,
        center: Float[Array, " dim"] | None = None,
    ):
        super().__init__()
        self.register_buffer("center", torch.zeros(dim) if center is None else torch.from_numpy(center))
        self.projector = ProjectionHead(dim, config.hidden_dim, config.out_dim, generator=generator)
        self.classifier = PrototypeClassifier(n_categories, dim, generator)

    def forward(self, features: Float[Tensor, "*rows dim"]) -> HeadOutputs:
        """Both."""
        features = features - self.center
        return HeadOutputs(self.projector(features), self.classifier(features))


class SimGCDLearner(Learner):
    """Eq. 6 on two weak views; the teacher is the network itself, without gradient."""

    def __init__(
        self,
        backbone: Backbone,
        config: SimGCDConfig,
        batches: BalancedBatches,
        n_categories: int,
        generator: torch.Generator,
        center: Float[Array, " dim"] | None = None,
    ):
        super().__init__(backbone, config.micro_batch)
        self.batches = (batches,)
        self.config = config
        self.heads = Heads(backbone.dim, n_categories, config, generator, center)
        self.losses = SimGCDObjective(
            supervised_share=config.supervised_share,
            temperature_unsup=config.temperature_unsup,
            temperature_sup=config.temperature_sup,
            temperature_student=config.temperature_student,
            entropy_scale=config.entropy_scale,
        )

    def outputs(self, stored: Mapping[str, Stored], part: int) -> Outputs:
        """Projections and logits of both views."""
        found: HeadOutputs = self.heads(self.features(stored["weak"], 2))
        return {"projections": found.projections, "logits": found.logits}

    def objective(
        self,
        outputs: Sequence[Outputs],
        labels: Sequence[Int[Tensor, " _"]],
        weight: Sequence[Float[Tensor, " _"]],
        epoch: int,
    ) -> LossParts:
        """The four losses of the batch."""
        config, (own,) = self.config, outputs
        return self.losses(
            own["projections"],
            own["logits"],
            own.get("teacher_logits", own["logits"]),
            labels[0],
            weight[0],
            temperature_teacher=teacher_temperature(
                epoch, config.temperature_teacher_first, config.temperature_teacher, config.n_warmup
            ),
        )


class SimGCD(TrainedDiscovery):
    """Train the last block, a projection head and one prototype for each category; the prototypes decide."""

    name = "simgcd"
    config_class = SimGCDConfig

    def _learn(self, data: TrainingData, plain: Views, track: Track) -> None:
        self._center = self._center_of(data, plain)
        learner = SimGCDLearner(
            self.backbone_,
            self.config,
            balanced_batches(data, self.config.batch_size, self.seed),
            self.n_categories,
            self._torch_generator("heads"),
            self._center,
        )
        self._train(learner, data, plain, self.config, self.folder, track)
        self._prototypes = learner.heads.classifier.prototypes.detach().cpu().numpy()

    def _center_of(self, data: TrainingData, plain: Views) -> Float[Array, " dim"] | None:
        """The mean feature of the images that learning sees, as the backbone is now; None where it stays in."""
        center = self.config.center
        if center == "never" or (center == "auto" and self.backbone_.cut.ends_in_norm):
            return None
        # not over the guides, whose common part is another
        return self._mean_feature(data, plain, np.concatenate([data.labeled, data.unlabeled]))

    def _assign(
        self, data: TrainingData, features: Float[Array, "images dim"]
    ) -> tuple[CategoryAssigner, Int[Array, " target"]]:
        assigner = CategoryAssigner.of_prototypes(self._prototypes, self._center)
        cluster, _, _ = assigner.assign(features[data.unlabeled])
        return assigner, cluster
