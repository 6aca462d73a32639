"""Clustering of features: semi-supervised k-means, Ward, and simple baselines."""

from justright.clustering.semisup_kmeans import SemiSupKMeans
