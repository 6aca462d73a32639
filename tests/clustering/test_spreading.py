from __future__ import annotations

import numpy as np
import pytest
from tests.clustering.blobs import blobs

from justright.clustering.spreading import N_ROUNDS, nearest_rows, share_alike, spread


def weights_as_loops(x, others, n, own=None):
    table = np.zeros((len(x), len(others)))
    for i, row in enumerate(x):
        cosine = [float(row @ other / np.linalg.norm(row) / np.linalg.norm(other)) for other in others]
        near = sorted((j for j in range(len(others)) if own is None or j != own[i]), key=lambda j: -cosine[j])[:n]
        total = sum(max(cosine[j], 0.0) ** 3 for j in near)
        for j in near:
            table[i, j] = max(cosine[j], 0.0) ** 3 / total if total else 0.0
    return table


def as_table(neighbors, n_others):
    table = np.zeros((len(neighbors.rows), n_others))
    np.add.at(table, (np.arange(len(table))[:, None], neighbors.rows), neighbors.weight)
    return table


def test_neighbors_agree_with_loops():
    x, _, _ = blobs(n_images=40)
    own = np.arange(40)
    np.testing.assert_allclose(as_table(nearest_rows(x, x, 5, own), 40), weights_as_loops(x, x, 5, own), atol=1e-9)
    other, _, _ = blobs(n_images=15, seed=3)
    np.testing.assert_allclose(as_table(nearest_rows(other, x, 5), 40), weights_as_loops(other, x, 5), atol=1e-9)


def test_blocks_of_rows_do_not_show(monkeypatch):
    x, _, _ = blobs(n_images=50)
    whole = nearest_rows(x, x, 4, np.arange(50))
    monkeypatch.setattr("justright.clustering.arrays._BLOCK_NUMBERS", 350)  # seven rows
    for part, of_whole in zip(nearest_rows(x, x, 4, np.arange(50)), whole, strict=True):
        np.testing.assert_allclose(part, of_whole, rtol=1e-12)


def test_an_image_that_is_there_already_is_not_its_own_neighbor():
    x, _, _ = blobs(n_images=40)
    kept = x.astype(np.float16).astype(np.float64)
    found = nearest_rows(x[:7], kept, 5)
    assert not (found.rows == np.arange(7)[:, None]).any()


def test_no_images_have_no_neighbors():
    x, _, _ = blobs(n_images=40)
    assert nearest_rows(x[:0], x, 5).rows.shape == (0, 5)


def spread_as_loops(start, fixed, table, n_categories, share):
    y = np.zeros((len(start), n_categories))
    for i, (category, label) in enumerate(zip(start, fixed, strict=True)):
        y[i, category if label == -1 else label] = 1
    found = y.copy()
    for _ in range(N_ROUNDS):
        after = np.zeros_like(found)
        for i in range(len(y)):
            heard = sum(table[i, j] * found[j] for j in range(len(y)))
            after[i] = y[i] if fixed[i] != -1 else (1 - share) * y[i] + share * heard
        found = after
    return found


@pytest.mark.parametrize("share", [0.0, 0.5, 0.8])
def test_spreading_agrees_with_loops(share):
    x, _, fixed = blobs(n_images=40)
    start = np.random.default_rng(1).integers(8, size=40)
    near = nearest_rows(x, x, 5, np.arange(40))
    expected = spread_as_loops(start, fixed, as_table(near, 40), 8, share)
    np.testing.assert_allclose(spread(start, fixed, near, 8, share), expected, atol=1e-5)


def test_labeled_rows_keep_their_class():
    x, _, fixed = blobs(noise=2.0)
    near = nearest_rows(x, x, 10, np.arange(len(x)))
    found = spread(np.full(len(x), 7), fixed, near, 8, 0.9).argmax(axis=1)
    np.testing.assert_array_equal(found[fixed >= 0], fixed[fixed >= 0])


def test_share_alike_agrees_with_loops():
    x, y, _ = blobs(n_images=40)
    near = nearest_rows(x, x, 5, np.arange(40))
    table = as_table(near, 40)
    expected = [sum(table[i, j] for j in range(40) if y[j] == y[i]) for i in range(40)]
    np.testing.assert_allclose(share_alike(y, near, y), expected, atol=1e-9)
