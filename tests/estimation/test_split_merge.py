import numpy as np

from justright.clustering import SemiSupKMeans
from justright.estimation import mixture as split_merge_module
from justright.estimation.mixture import SplitMerge, labeled_prior


def split_merge(z, is_labeled):
    prior = labeled_prior(z, np.where(np.arange(len(z)) < len(z) // 2, 0, 1))[1]
    return SplitMerge(z, is_labeled, prior, seed=0)


def test_two_blobs_in_one_cluster_split_and_one_blob_in_two_merges():
    rng = np.random.default_rng(0)
    z = np.concatenate([rng.normal(size=(40, 3)), rng.normal(size=(40, 3)) + 9])
    step = split_merge(z, np.zeros(80, dtype=bool))
    joined = step.centroids(np.zeros(80, dtype=int), 0)
    np.testing.assert_allclose(np.sort(joined[:, 0]), [0, 9], atol=0.6)
    torn = np.where(np.arange(80) < 40, np.arange(80) % 2, 2)
    np.testing.assert_allclose(np.sort(step.centroids(torn, 0)[:, 0]), [0, 9], atol=0.6)
    right = np.where(np.arange(80) < 40, 0, 1)
    assert len(step.centroids(right, 0)) == 2


def test_labeled_clusters_are_split_and_merged_too():
    rng = np.random.default_rng(0)
    z = np.concatenate([rng.normal(size=(40, 3)), rng.normal(size=(40, 3)) + 9])
    is_labeled = np.arange(80) < 20
    step = split_merge(z, is_labeled)
    np.testing.assert_allclose(step.centroids(np.zeros(80, dtype=int), 1)[:, 0], [9], atol=0.6)
    fragment = np.select([np.arange(80) < 30, np.arange(80) < 40], [0, 1], 2)
    np.testing.assert_allclose(step.centroids(fragment, 1)[:, 0], [9], atol=0.6)


def test_decisions_are_cached(monkeypatch):
    rng = np.random.default_rng(0)
    step = split_merge(rng.normal(size=(40, 3)), np.zeros(40, dtype=bool))
    first = step.centroids(np.zeros(40, dtype=int), 0)
    monkeypatch.setattr(SplitMerge, "_two_means", None)
    np.testing.assert_array_equal(step.centroids(np.zeros(40, dtype=int), 0), first)


def test_small_clusters_are_not_split(monkeypatch):
    z = np.random.default_rng(0).normal(size=(40, 3))
    tried = []

    def noting(*options, **more):
        tried.append(options)
        return SemiSupKMeans(*options, **more)

    monkeypatch.setattr(split_merge_module, "SemiSupKMeans", noting)
    few_free = split_merge(z, np.arange(40) >= 5)
    assert few_free._split(np.arange(40)) is None
    assert split_merge(z, np.zeros(40, dtype=bool))._split(np.arange(11)) is None
    assert not tried
    split_merge(z, np.arange(40) >= 6)._split(np.arange(40))
    split_merge(z, np.zeros(40, dtype=bool))._split(np.arange(12))
    assert len(tried) == 8
