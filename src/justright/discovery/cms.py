"""CMS: contrastive mean-shift learning, then mean shift and Ward's tree (Choi et al., CVPR 2024)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment
from torch import Tensor
from torch.nn.functional import normalize

from justright.clustering.arrays import sum_by_group
from justright.clustering.lloyd import nearest_two
from justright.clustering.ward import cut_tree, mean_shifted, ward_merges
from justright.data.batches import BalancedBatches
from justright.discovery.assigner import CategoryAssigner, Learned
from justright.discovery.base import TrainedDiscovery
from justright.discovery.configs import KMEANS_FIELDS, TrainConfig
from justright.discovery.gcd import GCDConfig, GCDLearner
from justright.discovery.learner import BatchLabels, BatchWeights, FitInputs, Outputs, features_of
from justright.features.backbone import Backbone
from justright.features.bank import Views
from justright.geometry import unit_rows
from justright.losses import CMSObjective, CMSSettings, LossParts
from justright.utils.errors import DegenerateError
from justright.utils.seeding import generator
from justright.utils.settings import COUNT, NOT_NEGATIVE, SHARE, at_least, one_of, setting
from justright.utils.types import Array, Features, Labels

MEMORY_STEP = -1  # step number that seeds the views of the memory


@dataclass(frozen=True)
class CMSConfig(CMSSettings, GCDConfig):
    """CMS, Choi et al., CVPR 2024."""

    exact_settings = {"cluster_by": "projections"}  # noqa: RUF012
    without_effect = dict.fromkeys(KMEANS_FIELDS, "CMS clusters by mean shift and Ward's tree")

    learning_rate: float = setting(0.05, "learning rate of the heads in the first epoch", NOT_NEGATIVE)
    floor_share: float = setting(5e-3, "the last learning rate, as a share of the first", SHARE)
    n_out: int | None = setting(768, "size of a layer after the head, as in the public code", COUNT.or_none())
    categories: Literal["given", "labeled"] = setting(
        "given",
        "number of clusters: as given, or the one that clusters labeled images best",
        one_of("given", "labeled"),
    )
    cluster_by: Literal["features", "projections"] = setting(
        "features", "what is clustered in the end; projections as published", one_of("features", "projections")
    )
    n_ward: int = setting(10_000, "images in Ward's tree at most; the others join the nearest cluster", at_least(2))

    min_steps = TrainConfig.min_steps  # GCD's lower number was only tested with GCD

    def extra_checkpoint_bytes(self, n_seen: int, n_categories: int, n_known: int) -> int:
        """Memory of two projections (float32) of each image."""
        return 4 * 2 * n_seen * (self.n_out or self.out_dim)


class CMSLearner(GCDLearner):
    """The losses of CMS on projections of two weak views, with the neighbors of the start of the epoch."""

    memory: Tensor

    def __init__(self, backbone: Backbone, config: CMSConfig, batches: BalancedBatches, generator: torch.Generator):
        super().__init__(backbone, config, batches, generator)
        self.losses = CMSObjective(config)
        self.rows = np.concatenate([batches.labeled, batches.unlabeled])
        self.register_buffer("memory", torch.zeros(2 * len(self.rows), config.n_out or config.out_dim))

    def begin_epoch(self, epoch: int, views: Mapping[str, Views]) -> None:
        """Fill the memory with two views of every image."""
        chosen = views["weak"].choose(epoch, MEMORY_STEP, len(self.rows), 2)
        features = features_of(self.backbone, views["weak"], np.tile(self.rows, 2), chosen.ravel())
        with torch.no_grad():
            projections = self.projector(torch.from_numpy(features).to(self.memory.device))
            # rows that are not finite become 0 here; a step that draws such an image raises and names it
            self.memory.copy_(normalize(projections, dim=-1).nan_to_num())

    def objective(self, outputs: Sequence[Outputs], labels: BatchLabels, weight: BatchWeights, epoch: int) -> LossParts:
        """Both losses of the batch."""
        return self.losses(outputs[0]["projections"], self.memory, labels[0], weight[0])

    def changing(self) -> dict[str, Tensor]:
        """The network, and the memory of the epoch."""
        return super().changing() | {"memory": self.memory}


class CMS(TrainedDiscovery):
    """Tune the last block so that neighbors move together, then apply mean shift and cut Ward's tree."""

    name = "cms"
    config_class = CMSConfig
    extractions_per_epoch = 2

    def _learn(self, inputs: FitInputs) -> Learned:
        config, data = self.config_, inputs.data
        batches = data.batches(config.batch_size, self.seed)
        learner = CMSLearner(inputs.backbone, config, batches, self._torch_generator("heads"))
        self._train(learner, inputs, config)
        features = inputs.features()
        unit = clustered = unit_rows(features[data.seen])
        if config.cluster_by == "projections":
            with torch.no_grad():
                projections = learner.projector(torch.from_numpy(features).to(inputs.backbone.device))
            clustered = unit_rows(projections.float().cpu().numpy()[data.seen])
        rows = rows_of_tree(len(clustered), config.n_ward, self.seed)
        clustering = ShiftedClusters(data.labels[data.labeled], len(data.known), rows)
        if config.categories == "labeled":
            self.n_categories_ = clustering.best_k(clustered)
        k = self.n_categories_
        category = clustering.best(clustered, k, config.n_neighbors, config.shift).category
        # new images are assigned to the nearest centroid of features, whatever was clustered
        assigner = CategoryAssigner.of_centroids(_centroids(unit, category, k))
        return Learned(assigner, data.of_target(category[len(data.labeled) :]))


_log = logging.getLogger(__name__)

MAX_SHIFTS = 20
PATIENCE = 2  # shifts without improvement before stopping
PATIENCE_OF_K = 50  # values of K without improvement before stopping


class NumberedClusters(NamedTuple):
    """The category of each image, known classes first, and the accuracy on labeled images."""

    category: Labels
    accuracy: float


@dataclass(frozen=True, eq=False)
class ShiftedClusters:
    """Clusters of unit rows, the labeled ones first."""

    labels: Int[Array, " labeled"]  # of the labeled rows, from 0
    n_known: int  # number of their classes
    rows: Int[Array, " rows"]  # that are in Ward's tree; the others join the nearest centroid

    def best(self, x: Features, k: int, n_neighbors: int, share: float) -> NumberedClusters:
        """Return K clusters after the number of shifts with the highest accuracy on labels; ties: most shifts.

        Stops after two shifts without improvement, or after twenty. Without labels it stops after two.
        """
        best, n_idle = self.cut(x, ward_merges(x[self.rows]), k), 0
        for _ in range(MAX_SHIFTS):
            x = mean_shifted(x, n_neighbors, share)
            now = self.cut(x, ward_merges(x[self.rows]), k)
            n_idle = 0 if now.accuracy > best.accuracy else n_idle + 1
            best = now if now.accuracy >= best.accuracy else best
            if n_idle == PATIENCE:
                break
        return best

    def best_k(self, x: Features) -> int:
        """Return the K above `n_known` with the highest accuracy on labels; ties: the middle one."""
        if not self.n_known:
            raise DegenerateError(
                "K cannot be chosen without labels", expected="labeled images", advice="categories=given"
            )
        merges = ward_merges(x[self.rows])
        accuracy: list[float] = []
        for k in range(self.n_known + 1, len(self.rows) + 1):
            accuracy.append(self.cut(x, merges, k).accuracy)
            if len(accuracy) - int(np.argmax(accuracy)) > PATIENCE_OF_K:
                break
        equals = np.flatnonzero(np.array(accuracy) == max(accuracy))
        return self.n_known + 1 + int(equals[len(equals) // 2])

    def cut(self, x: Features, merges: Int[Array, "merges 2"], k: int) -> NumberedClusters:
        """Cut the tree into K clusters and give known classes their numbers, matched by shared labeled images.

        Each class gets its own cluster: the nearest one, if no free cluster shares images with it.
        """
        if k > len(self.rows):
            raise DegenerateError(
                f"{k} categories for {len(self.rows)} images", expected="fewer categories than images"
            )
        part = cut_tree(merges, k)
        centroids = _centroids(x[self.rows], part, k)
        cluster = part if len(self.rows) == len(x) else nearest_two(x, centroids)[0]
        cluster[self.rows] = part
        n_labeled = len(self.labels)
        shared = np.zeros((self.n_known, k))
        np.add.at(shared, (self.labels, cluster[:n_labeled]), 1)
        means = _centroids(x[:n_labeled], self.labels, self.n_known)
        nearness = (1 + means @ centroids.T) / (2 * self.n_known + 2)  # below 1 over all classes together
        classes, own = linear_sum_assignment(shared + nearness, maximize=True)
        number = np.full(k, -1)
        number[own] = classes
        number[number < 0] = np.arange(self.n_known, k)
        return NumberedClusters(number[cluster], float(shared[classes, own].sum()) / max(n_labeled, 1))


def rows_of_tree(n_images: int, n_most: int, seed: int) -> Int[Array, " rows"]:
    """The rows in Ward's tree: all, or with a warning `n_most` of them at random."""
    if n_images <= n_most:
        return np.arange(n_images)
    _log.warning("Ward's tree uses %d of %d images; the others join the nearest cluster", n_most, n_images)
    return np.sort(generator(seed, "ward").permutation(n_images)[:n_most])


def _centroids(x: Features, group: Labels, n_groups: int) -> Float[Array, "{n_groups} dim"]:
    count = np.maximum(np.bincount(group, minlength=n_groups), 1)
    return (sum_by_group(x, group, n_groups) / count[:, None]).astype(x.dtype)
