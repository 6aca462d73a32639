"""Pure functions on arrays: centroids, similarities, distances, optimal transport, the beta density."""

from justright.geometry.beta import DOMAINS, beta_density, to_unit_interval
from justright.geometry.class_sums import ClassSums
from justright.geometry.cosine_quantile import CosineQuantile
from justright.geometry.distance import DISTANCES, cosine_distance, euclidean_distance
from justright.geometry.rows import check_rows, row_chunks, row_norms, unit_or_zero_rows, unit_rows
from justright.geometry.similarity import (
    cosine_similarity,
    farthest_similarity,
    nearest_similarity,
    row_quantile,
)
from justright.geometry.transport import distance_to_target, domain_similarity, emd, flow

__all__ = [
    "DISTANCES",
    "DOMAINS",
    "ClassSums",
    "CosineQuantile",
    "beta_density",
    "check_rows",
    "cosine_distance",
    "cosine_similarity",
    "distance_to_target",
    "domain_similarity",
    "emd",
    "euclidean_distance",
    "farthest_similarity",
    "flow",
    "nearest_similarity",
    "row_chunks",
    "row_norms",
    "row_quantile",
    "to_unit_interval",
    "unit_or_zero_rows",
    "unit_rows",
]
