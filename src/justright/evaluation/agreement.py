"""How much two partitions tell of each other, without any matching: NMI and ARI, from counts alone."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.special import entr

from justright.evaluation.counts import Counts
from justright.types import Array


def normalized_mutual_information(counts: Counts) -> float:
    """NMI = 2 I(Y; Y~) / (H(Y) + H(Y~)), 1 for equal partitions, 0 for independent ones.

    With I = H(Y) + H(Y~) - H(Y, Y~). Two partitions into a single group are equal: 1.
    """
    class_entropy, cluster_entropy = _entropy(counts.per_class()), _entropy(counts.per_cluster())
    if class_entropy + cluster_entropy == 0:
        return 1.0
    information = class_entropy + cluster_entropy - _entropy(counts.n)
    return float(np.clip(2 * information / (class_entropy + cluster_entropy), 0.0, 1.0))


def adjusted_rand_index(counts: Counts) -> float:
    """ARI = (R - E) / (M - E), the Rand index adjusted for chance: 1 for equal partitions, 0 on average by chance.

    R counts the pairs of images that share both class and cluster, E = A B / T is its expectation, M = (A + B) / 2
    its maximum, where A pairs share the class, B the cluster, and T are all pairs (Hubert and Arabie, 1985).
    """
    both, same_class, same_cluster = _pairs(counts.n), _pairs(counts.per_class()), _pairs(counts.per_cluster())
    every = _pairs(np.array([counts.n_images]))
    expected = same_class * same_cluster / every if every else 0.0
    most = (same_class + same_cluster) / 2
    # no pair can differ: one image, one group on both sides, or every image alone on both sides
    return 1.0 if most == expected else (both - expected) / (most - expected)


def _entropy(n: Int[Array, " groups"]) -> float:
    share: Float[Array, " groups"] = n / n.sum()
    return float(entr(share).sum())


def _pairs(n: Int[Array, " groups"]) -> float:
    # as floats: the square of a few billion images would overflow an integer
    return float((n * (n - 1.0) / 2).sum())
