import numpy as np

from justright.clustering.assignment import NearestAssignment, nearest_two


def test_the_two_nearest_centroids_are_found_with_their_scores():
    rng = np.random.default_rng(0)
    x, centroids = rng.normal(size=(30, 4)), rng.normal(size=(7, 4))
    label, first, second = nearest_two(x, centroids)
    for row, place, own, rival in zip(x, label, first, second, strict=True):
        score = [c @ c - 2 * row @ c for c in centroids]
        assert place == np.argmin(score)
        np.testing.assert_allclose((own, rival), sorted(score)[:2])


def test_following_only_what_moved_gives_the_answer_of_a_full_search():
    rng = np.random.default_rng(0)
    x, centroids = rng.normal(size=(300, 5)), rng.normal(size=(20, 5))
    assignment = NearestAssignment(x, centroids)
    for step in range(40):
        moved = np.sort(rng.choice(20, size=rng.integers(1, 20), replace=False))
        centroids[moved] += rng.normal(scale=rng.choice([0.01, 0.5, 2.0]), size=(len(moved), 5))
        assignment.update(centroids, moved)
        distance = ((x[:, None] - centroids) ** 2).sum(axis=2)
        np.testing.assert_array_equal(assignment.labels, distance.argmin(axis=1), err_msg=f"step {step}")
        second = np.sort(distance, axis=1)[:, 1] - (x**2).sum(axis=1)
        assert (assignment.rival <= second + 1e-9).all()


def test_a_row_put_into_a_cluster_by_hand_looks_at_every_centroid_next():
    x, centroids = np.array([[0.0], [1.0], [9.0]]), np.array([[0.5], [9.0]])
    assignment = NearestAssignment(x, centroids)
    assignment.replace(0, 1, 5.0)
    assert assignment.labels.tolist() == [1, 0, 1]
    assignment.update(centroids, np.array([1]))
    assert assignment.labels.tolist() == [0, 0, 1]
