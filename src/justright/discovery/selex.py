"""SelEx: contrastive learning with a hierarchy of clusters, recomputed every epoch (Rastegar et al., ECCV 2024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from justright.clustering.hierarchy import Order, hierarchy, level_sizes
from justright.discovery.assigner import Learned
from justright.discovery.base import TrainedDiscovery
from justright.discovery.gcd import GCDConfig, GCDLearner
from justright.discovery.learner import BatchLabels, BatchWeights, FitInputs, Outputs, features_of
from justright.features.backbone import Stored
from justright.features.bank import Views
from justright.losses import LossParts, SelExObjective, SelExSettings
from justright.losses.self_expertise import apart_by_clusters, apart_by_reach
from justright.utils.seeding import generator
from justright.utils.settings import one_of, setting

TARGETS = ("pseudo_label", "radius_raw")


@dataclass(frozen=True)
class SelExConfig(SelExSettings, GCDConfig):
    """SelEx, Rastegar et al., ECCV 2024."""

    # the rate falls from the first epoch on: a steady rate was better on some data and worse on other data
    small_settings = {"steady_share": 0.0}  # noqa: RUF012
    # the public code gives coarse labels to the wrong images; the figures of its paper come from it
    exact_settings = {"target": "radius_raw", "order": "official"}  # noqa: RUF012

    target: Literal["pseudo_label", "radius_raw"] = setting(
        "pseudo_label",
        "how pairs are separated: by cluster, or by distance compared with that of the next cluster",
        one_of(*TARGETS),
    )
    order: Order = setting(
        "restored",
        "official: coarse labels go to the wrong images, as in the public code",
        one_of("restored", "official"),
    )

    def extra_checkpoint_bytes(self, n_seen: int, n_categories: int, n_known: int) -> int:
        """Cluster (int64) and reach (float32) of each image at every level."""
        return (8 + 4) * n_seen * len(level_sizes(n_known, n_categories - n_known))


class SelExLearner(GCDLearner):
    """The losses of SelEx on projections of two weak views, with the clusters of the start of the epoch."""

    levels: Tensor
    reach: Tensor

    def __init__(self, inputs: FitInputs, config: SelExConfig, n_categories: int, seed: int, first: torch.Generator):
        data = inputs.data
        super().__init__(inputs.backbone, config, data.batches(config.batch_size, seed), first)
        self.config, self.plain, self.n_categories, self.seed = config, inputs.plain, n_categories, seed
        self.losses = SelExObjective(config)
        self.rows = data.seen
        self.labels = data.labels[self.rows]
        n_levels = len(level_sizes(len(data.known), n_categories - len(data.known)))
        self.register_buffer("levels", torch.zeros(n_levels, len(self.rows), dtype=torch.int64))
        self.register_buffer("reach", torch.zeros(n_levels, len(self.rows)))

    def begin_epoch(self, epoch: int, views: Mapping[str, Views]) -> None:
        """Compute the hierarchy from the current features of all images."""
        config, features = self.config, features_of(self.backbone, self.plain, self.rows)
        seed = int(generator(self.seed, "hierarchy", epoch).integers(2**31))
        tree = hierarchy(features, self.labels, self.n_categories, seed, order=config.order)
        self.levels.copy_(torch.from_numpy(tree.labels))
        self.reach.copy_(torch.from_numpy(tree.reach))

    def outputs(self, stored: Mapping[str, Stored], part: int) -> Outputs:
        """Projections of both views, and their features if pairs are separated by distance."""
        features = self.features(stored["weak"], 2)
        outputs = {} if self.config.target == "pseudo_label" else {"features": features}
        return outputs | {"projections": self.projector(features)}

    def objective(self, outputs: Sequence[Outputs], labels: BatchLabels, weight: BatchWeights, epoch: int) -> LossParts:
        """The three losses of the batch."""
        places = torch.from_numpy(np.searchsorted(self.rows, self.batch_rows[0])).to(self.levels.device)
        levels = self.levels[:, places]
        if self.config.target == "pseudo_label":
            apart = apart_by_clusters(levels)
        else:
            apart = apart_by_reach(outputs[0]["features"], self.reach[:, places])
        return self.losses(outputs[0]["projections"], levels, apart, labels[0], weight[0])

    def changing(self) -> dict[str, Tensor]:
        """The network, and the hierarchy of the epoch."""
        return super().changing() | {"levels": self.levels, "reach": self.reach}


class SelEx(TrainedDiscovery):
    """Tune the last block with the clusters of a hierarchy, then cluster its features around the known classes."""

    name = "selex"
    config_class = SelExConfig
    extractions_per_epoch = 1

    def _learn(self, inputs: FitInputs) -> Learned:
        first = self._torch_generator("heads")
        self._train(SelExLearner(inputs, self.config_, self.n_categories_, self.seed, first), inputs, self.config_)
        return self._by_clusters(inputs)
