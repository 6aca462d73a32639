"""KMeansBaseline: clusters of frozen features, nothing trained."""

from __future__ import annotations

from jaxtyping import Float, Int

from justright.data.splits import Split
from justright.discovery.assigner import CategoryAssigner
from justright.discovery.base import Discovery
from justright.discovery.clusters import clusters_of
from justright.discovery.configs import KMeansConfig
from justright.discovery.training_data import TrainingData, Weighting
from justright.features.stored_views import Views
from justright.progress import Track
from justright.types import Array


class KMeansBaseline(Discovery):
    """Semi-supervised k-means on features as the backbone gives them, or plain k-means with use_labels=False."""

    name = "kmeans"
    config_class = KMeansConfig

    def _data(self, split: Split, weight: Float[Array, " labeled"] | None, weighting: Weighting) -> TrainingData:
        data = super()._data(split, weight, weighting)
        return data if self.config.use_labels else data.without_labels()

    def _learn(self, data: TrainingData, plain: Views, track: Track) -> None:
        """Nothing is learned."""

    def _assign(
        self, data: TrainingData, features: Float[Array, "images dim"]
    ) -> tuple[CategoryAssigner, Int[Array, " target"]]:
        return clusters_of(data, features, self.n_categories, self.config.n_init, self.seed)
