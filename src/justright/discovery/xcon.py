"""XCon: GCD on all data and within each cluster of it (Fei et al., BMVC 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import nn

from justright.clustering import SemiSupKMeans
from justright.data.batches import BalancedBatches
from justright.discovery.assigner import Learned
from justright.discovery.base import TrainedDiscovery
from justright.discovery.gcd import GCDConfig
from justright.discovery.learner import BatchLabels, BatchWeights, FitInputs, Learner, Outputs
from justright.features.backbone import Backbone, Stored
from justright.losses import ContrastiveObjective, LossParts
from justright.losses.heads import ProjectionHead
from justright.utils.settings import COUNT, NOT_NEGATIVE, setting
from justright.utils.types import Array


@dataclass(frozen=True)
class XConConfig(GCDConfig):
    """XCon, Fei et al., BMVC 2022."""

    # the batch size of the other methods: the experts' batches add as many images
    small_settings = {"batch_size": 128}  # noqa: RUF012

    batch_size: int = setting(256, "images a step", COUNT)
    n_experts: int = setting(8, "parts of the data, each with a head of its own", COUNT)
    expert_scale: float = setting(0.1, "factor of the mean loss of the experts beside the global one", NOT_NEGATIVE)

    def head_size(self, dim: int, n_categories: int) -> int:
        """Parameters of one head for all data and one for each expert."""
        return (1 + self.n_experts) * super().head_size(dim, n_categories)


class XConLearner(Learner):
    """L = L_global + scale * mean_e L_e: one head and one batch for all data, and one of each for every expert.

    Images of one expert look alike, so separating them takes fine differences. Weights act in every supervised term.
    """

    def __init__(
        self, backbone: Backbone, config: XConConfig, batches: Sequence[BalancedBatches], generator: torch.Generator
    ):
        super().__init__(backbone, batches, config.micro_batch)
        self.expert_scale = config.expert_scale
        self.projectors = nn.ModuleList(
            ProjectionHead(backbone.dim, config.hidden_dim, config.out_dim, config.n_out, generator) for _ in batches
        )
        self.losses = ContrastiveObjective(config)

    def outputs(self, stored: Mapping[str, Stored], part: int) -> Outputs:
        """Projections of both views by the head of this part; part 0 is all data."""
        return {"projections": self.projectors[part](self.features(stored["weak"], 2))}

    def objective(self, outputs: Sequence[Outputs], labels: BatchLabels, weight: BatchWeights, epoch: int) -> LossParts:
        """The global loss and the mean of the experts'."""
        everything, *experts = [
            self.losses(output["projections"], *more) for output, *more in zip(outputs, labels, weight, strict=True)
        ]
        of_experts = torch.stack([loss.total for loss in experts]).mean()
        terms = everything.terms | {"experts": of_experts.detach()}
        return LossParts(everything.total + self.expert_scale * of_experts, terms)


class XCon(TrainedDiscovery):
    """GCD with experts. Each expert sees one k-means cluster of frozen features, fixed before training."""

    name = "xcon"
    config_class = XConConfig

    def _learn(self, inputs: FitInputs) -> Learned:
        config, data = self.config_, inputs.data
        expert = self._experts(inputs.features()[data.seen])
        batches = [data.batches(config.batch_size, self.seed)]
        size = max(1, config.batch_size // config.n_experts)
        for number in range(config.n_experts):
            own = data.seen[expert == number]
            is_labeled = own < data.n_labeled
            batches.append(data.batches(size, self.seed, f"expert {number}", own[is_labeled], own[~is_labeled]))
        learner = XConLearner(inputs.backbone, config, batches, self._torch_generator("heads"))
        self._train(learner, inputs, config)
        return self._by_clusters(inputs)

    def _experts(self, features: Float[Array, "images dim"]) -> Int[Array, " images"]:
        """Return the expert of each image."""
        # seed 0 for every seed of training, as in the public code
        return SemiSupKMeans(self.config_.n_experts, n_init=10, seed=0).fit(features).labels_
