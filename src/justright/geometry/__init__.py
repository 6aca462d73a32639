"""Pure functions on arrays: centroids, similarities, distances, optimal transport, the beta density."""

from justright.geometry.beta import DOMAINS, beta_density, to_unit_interval
from justright.geometry.rows import (
    ClassSums,
    at_least_single,
    below_quantile,
    evenly_spaced,
    quantiles,
    row_chunks,
    row_norms,
    unit_rows,
)
from justright.geometry.similarity import cosine_similarity, farthest_similarity, nearest_similarity, row_quantiles
from justright.geometry.transport import DISTANCES, distance_to_target, domain_similarity, emd, flow
