"""Clusters of features: given labels stay, the rest is assigned."""

from justright.clustering.semisup_kmeans import SemiSupKMeans
