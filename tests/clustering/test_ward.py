from __future__ import annotations

import numpy as np
import pytest
from tests.clustering.blobs import blobs

from justright.clustering.ward import cut_tree, mean_shifted, ward_merges


def unit_blobs(**options):
    x, y, _ = blobs(**options)
    return x / np.linalg.norm(x, axis=1, keepdims=True), y


def shifted_as_loops(x, n_neighbors, share):
    moved = []
    for i, row in enumerate(x):
        nearest = sorted((n for n in range(len(x)) if n != i), key=lambda n: -float(row @ x[n]))[:n_neighbors]
        u = (1 - share) * row + share * np.mean([x[n] for n in nearest], axis=0)
        moved.append(u / np.linalg.norm(u))
    return np.array(moved)


@pytest.mark.parametrize(("n_neighbors", "share"), [(8, 0.5), (1, 0.9), (3, 0.0)])
def test_agrees_with_mean_shift_written_as_loops(n_neighbors, share):
    x, _ = unit_blobs(n_images=60)
    np.testing.assert_allclose(mean_shifted(x, n_neighbors, share), shifted_as_loops(x, n_neighbors, share))


def test_neighbors_are_taken_before_any_row_moves():
    x, _ = unit_blobs(n_images=50)
    order = np.random.default_rng(0).permutation(len(x))
    np.testing.assert_allclose(mean_shifted(x[order], 4, 0.5), mean_shifted(x, 4, 0.5)[order])


def test_blocks_of_rows_do_not_show(monkeypatch):
    x, _ = unit_blobs(n_images=50)
    whole = mean_shifted(x, 4, 0.5)
    monkeypatch.setattr("justright.clustering.arrays._BLOCK_NUMBERS", 350)  # seven rows
    np.testing.assert_allclose(mean_shifted(x, 4, 0.5), whole)


def test_clusters_grow_together():
    x, y = unit_blobs(noise=0.3)
    spread = [np.mean([z[y == k].var(axis=0).sum() for k in range(8)]) for z in (x, mean_shifted(x, 8, 0.5))]
    assert spread[1] < 0.6 * spread[0]


def test_an_image_alone_stays_and_few_images_have_few_neighbors():
    x = np.array([[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(mean_shifted(x[:1], 8, 0.5), x[:1])
    np.testing.assert_allclose(mean_shifted(x, 8, 0.5), np.full((2, 2), 0.5**0.5))


def test_a_tree_has_the_clusters_of_every_k():
    x, y = unit_blobs(noise=0.05)
    merges = ward_merges(x)
    for k in (1, 2, 8, 100, len(x)):
        assert sorted(set(cut_tree(merges, k).tolist())) == list(range(k))
    found = cut_tree(merges, 8)
    assert len(set(zip(found.tolist(), y.tolist(), strict=True))) == 8


def test_each_merge_is_the_cheapest_one():
    """By loops: of all pairs of clusters, the one whose joining adds least to the sum of squares."""
    x, _ = unit_blobs(n_images=14)
    groups = [{i} for i in range(len(x))]

    def cost(a, b):
        def squares(group):
            rows = x[sorted(group)]
            return ((rows - rows.mean(axis=0)) ** 2).sum()

        return squares(a | b) - squares(a) - squares(b)

    for k in range(len(x) - 1, 0, -1):
        pairs = [(cost(a, b), i, j) for i, a in enumerate(groups) for j, b in enumerate(groups) if i < j]
        _, i, j = min(pairs)
        joined = groups[i] | groups[j]
        groups = [group for n, group in enumerate(groups) if n not in (i, j)] + [joined]
        found = cut_tree(ward_merges(x), k)
        assert {frozenset(np.flatnonzero(found == n).tolist()) for n in range(k)} == set(map(frozenset, groups))


def test_equal_images_are_cut_into_the_requested_number_of_clusters():
    assert len(set(cut_tree(ward_merges(np.ones((6, 3))), 4).tolist())) == 4
    assert cut_tree(ward_merges(np.ones((1, 3))), 1).tolist() == [0]
