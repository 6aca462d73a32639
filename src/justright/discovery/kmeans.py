"""KMeansBaseline: clusters of frozen features, nothing trained."""

from __future__ import annotations

from jaxtyping import Float, Int

from justright.discovery.assigner import CategoryAssigner
from justright.discovery.base import Discovery, clusters_of
from justright.discovery.configs import KMeansConfig
from justright.discovery.training_data import TrainingData
from justright.features.stored_views import Views
from justright.progress import Track
from justright.types import Array


class KMeansBaseline(Discovery):
    """Semi-supervised k-means on features as the backbone gives them, or plain k-means with use_labels=False."""

    name = "kmeans"
    config_class = KMeansConfig

    def _learn(self, data: TrainingData, plain: Views, track: Track) -> None:
        """Nothing is learned."""

    def _assign(
        self, data: TrainingData, features: Float[Array, "images dim"]
    ) -> tuple[CategoryAssigner, Int[Array, " target"]]:
        config = self.config
        return clusters_of(data, features, self.n_categories, config.n_init, self.seed, config.use_labels)
