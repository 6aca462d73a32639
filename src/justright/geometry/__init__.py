"""Pure functions on arrays: centroids, similarities, distances, optimal transport, the beta density."""

from justright.geometry.beta import DOMAINS, beta_density, to_unit_interval
from justright.geometry.centroids import class_centroids, cluster_centroids
from justright.geometry.class_sums import ClassSums
from justright.geometry.cosine_summary import (
    CosineMaximum,
    CosineMinimum,
    CosineQuantile,
    CosineSummary,
    cosine_summary,
)
from justright.geometry.distance import DISTANCES, cosine_distance, euclidean_distance
from justright.geometry.rows import check_rows, row_chunks, row_norms, unit_rows
from justright.geometry.similarity import (
    cosine_similarity,
    farthest_similarity,
    nearest_similarity,
    quantile_similarity,
    row_quantile,
)
from justright.geometry.transport import distance_to_target, domain_similarity, emd, flow

__all__ = [
    "DISTANCES",
    "DOMAINS",
    "ClassSums",
    "CosineMaximum",
    "CosineMinimum",
    "CosineQuantile",
    "CosineSummary",
    "beta_density",
    "check_rows",
    "class_centroids",
    "cluster_centroids",
    "cosine_distance",
    "cosine_similarity",
    "cosine_summary",
    "distance_to_target",
    "domain_similarity",
    "emd",
    "euclidean_distance",
    "farthest_similarity",
    "flow",
    "nearest_similarity",
    "quantile_similarity",
    "row_chunks",
    "row_norms",
    "row_quantile",
    "to_unit_interval",
    "unit_rows",
]
