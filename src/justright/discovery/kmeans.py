"""KMeansBaseline: k-means on frozen features, without training."""

from __future__ import annotations

from dataclasses import dataclass

from justright.discovery.assigner import Learned
from justright.discovery.base import Discovery
from justright.discovery.configs import Config
from justright.discovery.learner import FitInputs
from justright.utils.settings import YES_OR_NO, setting


@dataclass(frozen=True)
class KMeansConfig(Config):
    """Settings of k-means on frozen features."""

    use_labels: bool = setting(
        True, "semi-supervised; without labels: the k-means row of the paper's tables", YES_OR_NO
    )

    @property
    def sees_labels(self) -> bool:
        """Plain k-means sees the target only."""
        return self.use_labels


class KMeansBaseline(Discovery):
    """Semi-supervised k-means on features of the frozen backbone; plain k-means with use_labels=False."""

    name = "kmeans"
    config_class = KMeansConfig

    def _learn(self, inputs: FitInputs) -> Learned:
        return self._by_clusters(inputs)
