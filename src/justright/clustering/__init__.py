"""Clusters of features: given labels stay, the rest is assigned."""

from __future__ import annotations

from justright.clustering.semisup_kmeans import SemiSupKMeans

__all__ = ["SemiSupKMeans"]
