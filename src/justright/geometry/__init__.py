"""Pure functions on arrays: centroids, similarities, distances, optimal transport, the beta density."""

from justright.geometry.beta import DOMAINS, beta_density, to_unit_interval
from justright.geometry.class_sums import ClassSums
from justright.geometry.cosine_quantile import CosineQuantile
from justright.geometry.rows import check_rows, evenly_spaced, row_chunks, row_norms, unit_or_zero_rows, unit_rows
from justright.geometry.similarity import cosine_similarity, farthest_similarity, nearest_similarity, row_quantile
from justright.geometry.transport import DISTANCES, distance_to_target, domain_similarity, emd, flow
