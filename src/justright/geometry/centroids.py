"""Mean features: of the classes a person named and of the clusters an algorithm found."""

from __future__ import annotations

from jaxtyping import Float, Int

from justright.geometry.class_sums import ClassSums
from justright.types import Array


def class_centroids(
    features: Float[Array, "images dim"], labels: Int[Array, " images"]
) -> tuple[Int[Array, " classes"], Float[Array, "classes dim"]]:
    """The mean feature of each class, with the classes in ascending order. Eq. 7.

    h_c = 1 / N_c * sum_{y_i = c} f(x_i),  N_c images of class c.

    `ClassSums` computes the same over batches.
    """
    sums = ClassSums().update(features, labels)
    return sums.classes, sums.centroids()


def cluster_centroids(
    features: Float[Array, "images dim"], clusters: Int[Array, " images"]
) -> tuple[Int[Array, " clusters"], Float[Array, "clusters dim"]]:
    """The mean feature of each cluster of the target, with the clusters in ascending order. Eq. 10.

    h^u_c = 1 / N^u_c * sum_{yhat_j = c} f(x_j),  yhat_j the cluster that k-means gave image j.
    """
    sums = ClassSums().update(features, clusters)
    return sums.classes, sums.centroids()
