import subprocess
import sys

import numpy as np
import pytest
import threadpoolctl
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.clustering.blobs import blobs

from justright.clustering import SemiSupKMeans
from justright.utils.context import use
from justright.utils.errors import DegenerateError, JustrightError


def semisup_kmeans_as_loops(x, labels, init, max_iter):
    """GCD's algorithm, one image and one cluster at a time."""
    classes = sorted(set(labels.tolist()) - {-1})
    centroids = [np.mean([x[i] for i in range(len(x)) if labels[i] == c], axis=0) for c in classes] + list(init)

    def assign():
        return [
            classes.index(labels[i]) if labels[i] >= 0 else int(np.argmin([sum((x[i] - c) ** 2) for c in centroids]))
            for i in range(len(x))
        ]

    cluster = assign()
    for _ in range(max_iter):
        members = [[x[i] for i in range(len(x)) if cluster[i] == k] for k in range(len(centroids))]
        centroids = [np.mean(m, axis=0) for m in members]
        before, cluster = cluster, assign()
        if cluster == before:
            break
    return cluster, centroids, sum(sum((x[i] - centroids[cluster[i]]) ** 2) for i in range(len(x)))


@pytest.mark.parametrize("max_iter", [1, 2, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_agrees_with_the_algorithm_written_as_loops(max_iter, dtype):
    x, _, labels = blobs(n_images=90, seed=1)
    init = x[labels < 0][:5]
    kmeans = SemiSupKMeans(9, init=init, max_iter=max_iter, tol=0.0, normalize=False).fit(x.astype(dtype), labels)
    cluster, centroids, inertia = semisup_kmeans_as_loops(x, labels, init, max_iter)
    assert kmeans.labels_.tolist() == cluster
    np.testing.assert_allclose(kmeans.centroids_, centroids, rtol=1e-4, atol=1e-5)
    assert kmeans.inertia_ == pytest.approx(inertia, rel=1e-5)


def test_labels_are_kept_and_their_clusters_come_first_in_sorted_order():
    x, _, labels = blobs()
    shifted = np.where(labels >= 0, labels * 10 + 7, -1)
    kmeans = SemiSupKMeans(8).fit(x, shifted)
    assert kmeans.classes_.tolist() == [7, 17, 27, 37]
    known = shifted >= 0
    np.testing.assert_array_equal(kmeans.classes_[kmeans.labels_[known]], shifted[known])


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_images=st.integers(12, 60),
    n_new=st.integers(0, 6),
    noise=st.floats(0.0, 3.0),
)
def test_invariants_of_lloyd_iterations(seed, n_images, n_new, noise):
    x, _, labels = blobs(n_images, n_classes=4, dim=3, noise=noise + 0.01, seed=seed)
    labels[:2] = -1
    classes, place = np.unique(labels[labels >= 0], return_inverse=True)
    n_clusters = max(len(classes) + min(n_new, int((labels < 0).sum())), 1)
    last = np.inf
    for max_iter in (1, 2, 3, 5, 20):
        kmeans = SemiSupKMeans(n_clusters, n_init=1, max_iter=max_iter, tol=0.0, seed=seed)
        kmeans.fit(x, labels)
        assert kmeans.inertia_ <= last * (1 + 1e-9) + 1e-12
        last = kmeans.inertia_
        np.testing.assert_array_equal(kmeans.labels_[labels >= 0], place)
        assert np.bincount(kmeans.labels_, minlength=n_clusters).min() >= 1
        assert np.isfinite(kmeans.centroids_).all()


def test_shuffling_rows_shuffles_labels():
    x, _, labels = blobs()
    order = np.random.default_rng(1).permutation(len(x))
    init = SemiSupKMeans(8, n_init=1, max_iter=1).fit(x, labels).centroids_[4:]
    one = SemiSupKMeans(8, init=init).fit(x, labels)
    other = SemiSupKMeans(8, init=init).fit(x[order], labels[order])
    np.testing.assert_array_equal(one.labels_[order], other.labels_)
    assert one.inertia_ == pytest.approx(other.inertia_, rel=1e-9)


def test_same_seed_same_result_and_more_restarts_are_never_worse():
    x, _, labels = blobs(noise=1.0)
    fits = [SemiSupKMeans(12, n_init=n, seed=5).fit(x, labels) for n in (1, 4, 4, 12)]
    np.testing.assert_array_equal(fits[1].labels_, fits[2].labels_)
    assert fits[0].inertia_ >= fits[1].inertia_ == fits[2].inertia_ >= fits[3].inertia_


def test_tensors_give_the_same_arrays():
    x, _, labels = blobs(noise=0.8)
    ours = SemiSupKMeans(10).fit(x, labels)
    theirs = SemiSupKMeans(10).fit(torch.from_numpy(x), torch.from_numpy(labels))
    np.testing.assert_array_equal(theirs.labels_, ours.labels_)
    np.testing.assert_array_equal(theirs.centroids_, ours.centroids_)
    np.testing.assert_array_equal(theirs.predict(torch.from_numpy(x[:9])), ours.predict(x[:9]))


def test_half_precision_features_are_clustered_in_single_precision():
    x, _, labels = blobs(noise=0.1)
    half = SemiSupKMeans(8).fit(x.astype(np.float16), labels)
    assert half.centroids_.dtype == np.float32
    np.testing.assert_array_equal(half.labels_, SemiSupKMeans(8).fit(x.astype(np.float32), labels).labels_)


def test_predict_repeats_the_labels_of_unlabeled_images():
    x, _, labels = blobs()
    kmeans = SemiSupKMeans(8, tol=0.0).fit(x, labels)
    unlabeled = labels < 0
    np.testing.assert_array_equal(kmeans.predict(x[unlabeled]), kmeans.labels_[unlabeled])


def test_far_from_the_origin_single_precision_still_finds_the_blobs():
    x, y, _ = blobs(noise=0.02)
    kmeans = SemiSupKMeans(8, normalize=False).fit((x + 300).astype(np.float32))
    assert len({*zip(y.tolist(), kmeans.labels_.tolist(), strict=True)}) == 8


def test_as_many_clusters_as_images():
    x, _, _ = blobs(n_images=30)
    kmeans = SemiSupKMeans(30).fit(x)
    assert sorted(kmeans.labels_.tolist()) == list(range(30))
    assert kmeans.inertia_ == pytest.approx(0, abs=1e-12)


def test_all_images_labeled_gives_the_class_means():
    x, y, _ = blobs(n_images=40)
    kmeans = SemiSupKMeans(8, normalize=False).fit(x, y)
    np.testing.assert_array_equal(kmeans.labels_, y)
    np.testing.assert_allclose(kmeans.centroids_, [x[y == c].mean(axis=0) for c in range(8)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_duplicates_fill_as_many_clusters_as_there_are_distinct_images(dtype):
    x = np.repeat(blobs(n_images=6)[0], 7, axis=0).astype(dtype)
    kmeans = SemiSupKMeans(6).fit(x)
    assert np.bincount(kmeans.labels_).tolist() == [7] * 6
    with pytest.raises(DegenerateError, match="only 6 distinct features"):
        SemiSupKMeans(7).fit(x)


def test_a_row_of_zeros_has_no_direction_and_no_nan():
    x, _, labels = blobs()
    x[5] = 0
    assert np.isfinite(SemiSupKMeans(8).fit(x, labels).centroids_).all()


def test_the_number_of_threads_changes_nothing():
    x, _, labels = blobs(n_images=3000, n_classes=40, dim=64)
    x = x.astype(np.float32)
    found = []
    for n_threads in (1, 2):
        with threadpoolctl.threadpool_limits(n_threads):
            found.append(SemiSupKMeans(40, n_init=2).fit(x, labels).labels_)
    np.testing.assert_array_equal(*found)


X = blobs(n_images=20)[0]


@pytest.mark.parametrize(
    ("n_clusters", "features", "labels", "message"),
    [
        (1, X, np.arange(20) % 3 - 1, "1 clusters for 2 labeled classes"),
        (21, X, None, "21 clusters"),
        (20, X, np.where(np.arange(20) < 2, 0, -1), "20 clusters for 1 labeled"),
        (0, X, None, "0 clusters"),
        (2, np.where(np.arange(20)[:, None] == 3, np.nan, X), None, r"1 of 20 rows \(row 3\)"),
        (2, np.where(np.arange(20)[:, None] == 3, np.inf, X), None, "infinite values"),
        (2, X[:0], None, "shape"),
        (2, X[:, :0], None, "shape"),
        (2, X[0], None, "shape"),
        (2, X, np.zeros(19, dtype=int), "19"),
        (2, X, np.full(20, -2), "a label below -1, e.g. -2"),
        (2, X, np.zeros(20), "type float64"),
        (2, np.ones((20, 3)), None, "only 1 distinct features"),
    ],
)
def test_invalid_input_is_rejected(n_clusters, features, labels, message):
    with pytest.raises(JustrightError, match=message):
        SemiSupKMeans(n_clusters).fit(features, labels)


def test_init_of_another_shape_is_rejected():
    with pytest.raises(DegenerateError, match="init of shape"):
        SemiSupKMeans(4, init=X[:3]).fit(X)


def test_predict_rejects_features_of_another_width():
    with pytest.raises(DegenerateError, match="features of 5 numbers"):
        SemiSupKMeans(4).fit(X).predict(X[:, :5])


def test_restarts_are_tracked():
    seen = []

    def track(steps, total, what):
        for step in steps:
            seen.append((total, what))
            yield step

    with use(progress=track):
        SemiSupKMeans(3, n_init=4).fit(X)
    assert seen == [(4, "k-means restarts")] * 4


def test_importing_does_not_import_torch():
    code = "import sys, justright.clustering, justright.estimation; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_fit_predict_returns_the_labels_of_fit():
    x, _, labels = blobs(n_images=60, seed=1)
    n_clusters = len(set(labels.tolist()) - {-1}) + 1
    found = SemiSupKMeans(n_clusters, seed=0).fit_predict(x, labels)
    assert found.tolist() == SemiSupKMeans(n_clusters, seed=0).fit(x, labels).labels_.tolist()
