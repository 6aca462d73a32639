"""CMS: contrastive mean-shift learning, then mean shift and Ward's tree (Choi et al., CVPR 2024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from justright.data.batches import BalancedBatches
from justright.discovery.assigner import Learned
from justright.discovery.configs import KMEANS_FIELDS, TrainConfig
from justright.discovery.gcd import GCDConfig, GCDLearner
from justright.discovery.learner import BatchLabels, BatchWeights, FitInputs, Outputs, features_of
from justright.discovery.shifted_clusters import by_shifted_clusters
from justright.discovery.trained import TrainedDiscovery
from justright.features.backbone import Backbone
from justright.features.views import Views
from justright.losses import CMSObjective, CMSSettings, LossParts
from justright.utils.settings import COUNT, NOT_NEGATIVE, SHARE, at_least, one_of, setting

BEFORE_STEPS = -1  # in place of the number of a step, for the views that the memory is made of


@dataclass(frozen=True)
class CMSConfig(CMSSettings, GCDConfig):
    """CMS, Choi et al., CVPR 2024."""

    learning_rate: float = setting(0.05, "learning rate of the heads in the first epoch", NOT_NEGATIVE)
    floor_share: float = setting(5e-3, "the last learning rate, as a share of the first", SHARE)
    n_out: int | None = setting(768, "size of a layer after the head, as in the public code", COUNT.or_none())
    categories: Literal["given", "labeled"] = setting(
        "given",
        "number of clusters: as given, or at which labeled images are clustered best",
        one_of("given", "labeled"),
    )
    cluster_by: Literal["features", "projections"] = setting(
        "features", "what is clustered in the end; projections as published", one_of("features", "projections")
    )
    n_ward: int = setting(10_000, "images in Ward's tree at most; the others join the nearest cluster", at_least(2))

    fewest_steps = TrainConfig.fewest_steps  # the fewer ones of GCD were tried with GCD alone

    def remembered_bytes(self, n_seen: int, n_categories: int, n_known: int) -> int:
        """The memory: two projections of each image, float32."""
        return 4 * 2 * n_seen * (self.n_out or self.out_dim)

    def without_effect(self) -> dict[str, str]:
        """The settings of k-means, which is not used."""
        return super().without_effect() | dict.fromkeys(KMEANS_FIELDS, "mean shift and a tree decide here, not k-means")

    def exact(self) -> Any:
        """As published: projections are clustered."""
        return super().exact().with_settings({"cluster_by": "projections"})


class CMSLearner(GCDLearner):
    """The losses of CMS on projections of two weak views; neighbors are those of the beginning of the epoch."""

    memory: Tensor

    def __init__(self, backbone: Backbone, config: CMSConfig, batches: BalancedBatches, generator: torch.Generator):
        super().__init__(backbone, config, batches, generator)
        self.losses = CMSObjective(config)
        self.rows = np.concatenate([batches.labeled, batches.unlabeled])
        self.register_buffer("memory", torch.zeros(2 * len(self.rows), config.n_out or config.out_dim))

    def begin_epoch(self, epoch: int, views: Mapping[str, Views]) -> None:
        """Two views of every image into the memory."""
        chosen = views["weak"].choose(epoch, BEFORE_STEPS, len(self.rows), 2)
        features = features_of(self.backbone, views["weak"], np.tile(self.rows, 2), chosen.ravel())
        with torch.no_grad():
            seen = torch.from_numpy(features).to(self.memory.device)
            # an image that is not finite is nobody's neighbor; the step that draws it stops and names it
            self.memory.copy_(normalize(self.projector(seen), dim=-1).nan_to_num())

    def objective(self, outputs: Sequence[Outputs], labels: BatchLabels, weight: BatchWeights, epoch: int) -> LossParts:
        """Both losses of the batch."""
        return self.losses(outputs[0]["projections"], self.memory, labels[0], weight[0])

    def changing(self) -> dict[str, Tensor]:
        """The network, and the memory of the epoch."""
        return super().changing() | {"memory": self.memory}


class CMS(TrainedDiscovery):
    """Tune the last block so that neighbors gather, then shift features together and cut Ward's tree."""

    name = "cms"
    config_class = CMSConfig
    features_an_epoch = 2

    def _learn(self, inputs: FitInputs) -> Learned:
        config: CMSConfig = self.config_
        batches = inputs.data.batches(config.batch_size, self.seed)
        learner = CMSLearner(inputs.backbone, config, batches, self._torch_generator("heads"))
        self._train(learner, inputs, config)
        features = clustered = inputs.features()
        if config.cluster_by == "projections":
            with torch.no_grad():
                projections = learner.projector(torch.from_numpy(features).to(inputs.backbone.device))
            clustered = projections.float().cpu().numpy()
        k = self.n_categories_ if config.categories == "given" else None
        learned = by_shifted_clusters(inputs.data, features, clustered, k, config, self.seed)
        self.n_categories_ = len(learned.assigner.vectors)
        return learned
