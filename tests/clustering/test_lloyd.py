import numpy as np

from justright.clustering import SemiSupKMeans
from justright.clustering.lloyd import Points, lloyd


def points_of(x, n_clusters):
    """Rows without any label."""
    return Points(x, (x**2).sum(axis=1), np.zeros((n_clusters, x.shape[1])), np.zeros(n_clusters, dtype=np.int64), 0.0)


def test_rows_end_at_their_nearest_centroid_and_centroids_at_their_mean():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 3))
    found = lloyd(points_of(x, 4), x[:4], max_iter=100, tol=0.0)
    distance = ((x[:, None] - found.centroids) ** 2).sum(axis=2)
    assert found.labels.tolist() == distance.argmin(axis=1).tolist()
    np.testing.assert_allclose(found.centroids, [x[found.labels == k].mean(axis=0) for k in range(4)])
    np.testing.assert_allclose(found.inertia, distance.min(axis=1).sum())


def test_labeled_rows_hold_their_centroid_by_their_sums():
    x = np.array([[1.0], [2.0], [10.0]])
    held = Points(x, (x**2).sum(axis=1), np.array([[-6.0], [0.0]]), np.array([3, 0]), 12.0)  # three rows at -2
    found = lloyd(held, np.array([[-2.0], [10.0]]), max_iter=100, tol=0.0)
    assert found.labels.tolist() == [0, 0, 1]
    np.testing.assert_allclose(found.centroids[:, 0], [(-6 + 3) / 5, 10])


def test_it_ends_after_so_many_rounds_or_when_shifts_are_small():
    x = np.random.default_rng(0).normal(size=(200, 3))
    assert lloyd(points_of(x, 8), x[:8], max_iter=2, tol=0.0).n_iter == 2
    assert lloyd(points_of(x, 8), x[:8], max_iter=100, tol=1e9).n_iter == 1


def test_a_cluster_that_starts_where_nobody_is_gets_the_farthest_image():
    x = np.array([[0.0], [0.1], [0.2], [5.0]])
    kmeans = SemiSupKMeans(2, init=np.array([[0.1], [900.0]]), normalize=False).fit(x)
    assert kmeans.labels_.tolist() == [0, 0, 0, 1]
    worse = SemiSupKMeans(3, init=np.array([[0.1], [900.0], [901.0]]), normalize=False).fit(x)
    assert np.bincount(worse.labels_).min() == 1
