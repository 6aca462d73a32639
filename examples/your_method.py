"""Your own method: python examples/your_method.py discover --method anchored --target photos/ ...

It pulls features of one class and views of one image together, then clusters. Stored views, batches, checkpoints,
resuming, several processes, predictions and reports come from the library.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch.nn.functional import normalize

from justright import (
    METHODS,
    Learner,
    LossParts,
    SelfContrastiveLoss,
    TrainConfig,
    TrainedDiscovery,
    WeightedSupConLoss,
    main,
    setting,
)


@dataclass(frozen=True)
class AnchoredConfig(TrainConfig):
    """Its settings, in addition to those of all trained methods: --set pull=2."""

    pull: float = setting(1.0, "factor of the loss that reads labels")


class AnchoredLearner(Learner):
    def __init__(self, backbone, config, batches):
        super().__init__(backbone, [batches], config.micro_batch)
        self.pull, self.apart = config.pull, SelfContrastiveLoss(config.temperature_unsup)
        self.together = WeightedSupConLoss(config.temperature_sup)

    def outputs(self, stored, part):
        return {"features": normalize(self.features(stored["weak"], 2), dim=-1)}  # two views of each image

    def objective(self, outputs, labels, weight, epoch):
        features = outputs[0]["features"]
        apart, together = self.apart(features), self.together(features, labels[0], weight[0])
        return LossParts(apart + self.pull * together, {"apart": apart.detach(), "together": together.detach()})


class Anchored(TrainedDiscovery):
    name, config_class = "anchored", AnchoredConfig

    def _learn(self, inputs):
        batches = inputs.data.batches(self.config_.batch_size, self.seed)
        self._train(AnchoredLearner(inputs.backbone, self.config_, batches), inputs, self.config_)
        return self._by_clusters(inputs)  # semi-supervised k-means


METHODS.add("anchored", Anchored, "pulls features of one class together, without a head")

if __name__ == "__main__":
    main()
