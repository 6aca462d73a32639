"""SimGCD: representation and classifier at once, the network its own teacher (Wen et al., ICCV 2023)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from justright.data.batches import BalancedBatches
from justright.discovery.assigner import Center, Learned, by_prototypes
from justright.discovery.configs import PlannedTraining
from justright.discovery.heads_first import rows_for_heads
from justright.discovery.learner import BatchLabels, BatchWeights, FitInputs, Learner, Outputs, mean_feature
from justright.discovery.schedules import teacher_temperature
from justright.discovery.simgcd_config import SimGCDConfig
from justright.discovery.trained import TrainedDiscovery
from justright.features.backbone import Backbone, Stored
from justright.losses import LossParts, SimGCDObjective
from justright.losses.heads import ProjectionHead, PrototypeClassifier
from justright.utils.types import Array


class Heads(nn.Module):
    """A projection head and a prototype classifier side by side on the feature, its `center` taken off."""

    center: Tensor

    def __init__(
        self, dim: int, n_categories: int, config: SimGCDConfig, generator: torch.Generator, center: Center = None
    ):
        super().__init__()
        self.register_buffer("center", torch.zeros(dim) if center is None else torch.from_numpy(center))
        self.projector = ProjectionHead(dim, config.hidden_dim, config.out_dim, generator=generator)
        self.classifier = PrototypeClassifier(n_categories, dim, generator)

    def forward(self, features: Float[Tensor, "*rows dim"]) -> dict[str, Tensor]:
        """The outputs of both heads, `projections` and `logits`."""
        features = features - self.center
        return {"projections": self.projector(features), "logits": self.classifier(features)}

    def prototypes(self) -> Float[Array, "categories dim"]:
        """The learned prototypes, as numpy."""
        return self.classifier.prototypes.detach().cpu().numpy()


class LearnerWithHeads(Learner):
    """What SimGCD and muGCD share: heads and their losses."""

    has_categories = True

    def __init__(self, backbone: Backbone, config: SimGCDConfig, batches: BalancedBatches, heads: Heads):
        super().__init__(backbone, [batches], config.micro_batch)
        self.config, self.heads = config, heads
        self.losses = SimGCDObjective(config)
        self.n_unsettled = config.n_warmup or 0

    def categories_of(self, features: Float[Array, "rows dim"]) -> Int[Array, " rows"]:
        """The category of each feature: that of the nearest prototype."""
        with torch.no_grad():
            centered = torch.from_numpy(features).to(self.heads.center.device) - self.heads.center
            return self.heads.classifier(centered).argmax(dim=-1).cpu().numpy()

    def objective(self, outputs: Sequence[Outputs], labels: BatchLabels, weight: BatchWeights, epoch: int) -> LossParts:
        """The four losses of the batch; without `teacher_logits` it is its own teacher."""
        found, config = outputs[0], self.config
        first, last = config.temperature_teacher_first, config.temperature_teacher
        temperature = teacher_temperature(epoch, first, last, config.n_warmup or 0)
        rows = found["projections"], found["logits"], found.get("teacher_logits", found["logits"])
        return self.losses(*rows, labels[0], weight[0], temperature_teacher=temperature)


class SimGCDLearner(LearnerWithHeads):
    """Eq. 6 on two weak views; the teacher is the network itself, without gradient."""

    def outputs(self, stored: Mapping[str, Stored], part: int) -> Outputs:
        """Projections and logits of both views."""
        return self.heads(self.features(stored["weak"], 2))


class WithHeads(TrainedDiscovery):
    """A method whose heads may learn alone before the network is tuned."""

    has_categories = True

    @classmethod
    def trainings(cls, config: Any) -> list[PlannedTraining]:
        """The heads alone where the settings ask for it, then all."""
        if not config.heads_first:
            return super().trainings(config)
        heads = PlannedTraining(config.of_heads(), tuple(SimGCDLearner.streams), "heads")
        return [heads, *super().trainings(config.after_heads())]

    def _heads(self, inputs: FitInputs) -> tuple[Heads, Center]:
        """Heads for the backbone as it is now, and the mean feature that they take off."""
        config, backbone, data = self.config_, inputs.backbone, inputs.data
        center = None
        if config.center == "always" or (config.center == "auto" and not backbone.cut.ends_in_norm):
            # not over the guides, whose common part is another
            center = mean_feature(backbone, inputs.plain, data.seen)
        heads = Heads(backbone.dim, self.n_categories_, config, self._torch_generator("heads"), center)
        return heads, center

    def _train_heads(self, heads: Heads, config: SimGCDConfig, inputs: FitInputs) -> Any:
        """Let the heads learn alone, where the settings ask for it; returns the settings of what follows."""
        if not config.heads_first:
            return config
        alone = config.of_heads()
        batches = inputs.data.batches(alone.batch_size, self.seed, "heads", *rows_for_heads(inputs.data))
        learner = SimGCDLearner(inputs.backbone, alone, batches, heads)
        learner.is_tuned = False
        self._train(learner, inputs, alone, "heads", stage="heads")
        return config.after_heads()


class SimGCD(WithHeads):
    """Train the last block, a projection head and one prototype for each category; the prototypes decide."""

    name = "simgcd"
    config_class = SimGCDConfig

    def _learn(self, inputs: FitInputs) -> Learned:
        heads, center = self._heads(inputs)
        config = self._train_heads(heads, self.config_, inputs)
        batches = inputs.data.batches(config.batch_size, self.seed)
        self._train(SimGCDLearner(inputs.backbone, config, batches, heads), inputs, config)
        return by_prototypes(inputs.data, inputs.features(), heads.prototypes(), center)
