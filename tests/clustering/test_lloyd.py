import numpy as np

from justright.clustering import SemiSupKMeans
from justright.clustering.lloyd import NearestCentroids, Points, lloyd, nearest_two


def points_of(x, n_clusters):
    """Rows without any label."""
    return Points(x, (x**2).sum(axis=1), np.zeros((n_clusters, x.shape[1])), np.zeros(n_clusters, dtype=np.int64))


def test_rows_are_nearest_and_centroids_are_means():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 3))
    labels, centroids, _ = lloyd(points_of(x, 4), x[:4], max_iter=100, tol=0.0)
    distance = ((x[:, None] - centroids) ** 2).sum(axis=2)
    assert labels.tolist() == distance.argmin(axis=1).tolist()
    np.testing.assert_allclose(centroids, [x[labels == k].mean(axis=0) for k in range(4)])


def test_labeled_rows_hold_their_centroid_by_their_sums():
    x = np.array([[1.0], [2.0], [10.0]])
    held = Points(x, (x**2).sum(axis=1), np.array([[-6.0], [0.0]]), np.array([3, 0]))  # three rows at -2
    labels, centroids, _ = lloyd(held, np.array([[-2.0], [10.0]]), max_iter=100, tol=0.0)
    assert labels.tolist() == [0, 0, 1]
    np.testing.assert_allclose(centroids[:, 0], [(-6 + 3) / 5, 10])


def test_stops_after_max_iter_or_when_shifts_are_small():
    x = np.random.default_rng(0).normal(size=(200, 3))
    assert lloyd(points_of(x, 8), x[:8], max_iter=2, tol=0.0)[2] == 2
    assert lloyd(points_of(x, 8), x[:8], max_iter=100, tol=1e9)[2] == 1


def test_an_empty_cluster_gets_the_farthest_image():
    x = np.array([[0.0], [0.1], [0.2], [5.0]])
    kmeans = SemiSupKMeans(2, init=np.array([[0.1], [900.0]]), normalize=False).fit(x)
    assert kmeans.labels_.tolist() == [0, 0, 0, 1]
    worse = SemiSupKMeans(3, init=np.array([[0.1], [900.0], [901.0]]), normalize=False).fit(x)
    assert np.bincount(worse.labels_).min() == 1


def test_nearest_two_agree_with_loops():
    rng = np.random.default_rng(0)
    x, centroids = rng.normal(size=(30, 4)), rng.normal(size=(7, 4))
    label, first, second = nearest_two(x, centroids)
    for row, place, own, rival in zip(x, label, first, second, strict=True):
        score = [c @ c - 2 * row @ c for c in centroids]
        assert place == np.argmin(score)
        np.testing.assert_allclose((own, rival), sorted(score)[:2])


def test_updates_agree_with_a_full_search():
    rng = np.random.default_rng(0)
    x, centroids = rng.normal(size=(300, 5)), rng.normal(size=(20, 5))
    nearest = NearestCentroids(x, centroids)
    for step in range(40):
        moved = np.sort(rng.choice(20, size=rng.integers(1, 20), replace=False))
        centroids[moved] += rng.normal(scale=rng.choice([0.01, 0.5, 2.0]), size=(len(moved), 5))
        nearest.update(centroids, moved)
        distance = ((x[:, None] - centroids) ** 2).sum(axis=2)
        np.testing.assert_array_equal(nearest.labels, distance.argmin(axis=1), err_msg=f"step {step}")
        second = np.sort(distance, axis=1)[:, 1] - (x**2).sum(axis=1)
        assert (nearest.rival <= second + 1e-9).all()


def test_an_assigned_row_is_compared_with_every_centroid_next():
    x, centroids = np.array([[0.0], [1.0], [9.0]]), np.array([[0.5], [9.0]])
    nearest = NearestCentroids(x, centroids)
    nearest.assign(0, 1, 5.0)
    assert nearest.labels.tolist() == [1, 0, 1]
    nearest.update(centroids, np.array([1]))
    assert nearest.labels.tolist() == [0, 0, 1]
