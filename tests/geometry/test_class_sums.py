from __future__ import annotations

import numpy as np
import pytest

from justright.geometry import ClassSums
from justright.geometry.rows import CHUNK_ROWS
from justright.utils.errors import DataError


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    return rng.normal(size=(50, 4)).astype(np.float32), rng.integers(0, 7, size=50)


def test_batches_and_merges_give_the_centroids_of_all_images(images):
    features, labels = images
    first, second = ClassSums(), ClassSums()
    first.update(features[:20], labels[:20]).update(features[20:23], labels[20:23])
    second.update(features[23:], labels[23:])
    merged = first.merge(second)
    whole = ClassSums().update(features, labels)
    assert np.array_equal(merged.classes, whole.classes)
    assert merged.centroids() == pytest.approx(whole.centroids(), abs=1e-14)
    assert merged.counts.sum() == len(features)


def test_merge_is_symmetric_and_ignores_empty_sums(images):
    features, labels = images

    def part(rows):
        return ClassSums().update(features[rows], labels[rows])

    one, two = slice(0, 30), slice(30, 50)
    forth, back = part(one).merge(part(two)), part(two).merge(part(one))
    assert np.array_equal(forth.classes, back.classes)
    assert forth.sums == pytest.approx(back.sums, abs=1e-14)
    assert np.array_equal(part(one).merge(ClassSums()).sums, part(one).sums)
    assert np.array_equal(ClassSums().merge(part(one)).sums, part(one).sums)


def test_batch_larger_than_a_chunk_is_summed_completely():
    n_images = 2 * CHUNK_ROWS + 17
    sums = ClassSums().update(np.ones((n_images, 2), dtype=np.float32), np.arange(n_images) % 3)
    assert np.array_equal(sums.sums[:, 0], sums.counts)


def test_classes_may_appear_in_any_batch_and_order():
    sums = ClassSums().update(np.array([[1.0]]), np.array([5])).update(np.array([[2.0], [4.0]]), np.array([9, 1]))
    assert sums.classes.tolist() == [1, 5, 9]
    assert sums.sums.ravel().tolist() == [4.0, 1.0, 2.0]


def test_features_of_another_dimension_raise():
    sums = ClassSums().update(np.ones((2, 3)), np.array([0, 1]))
    with pytest.raises(DataError, match="4 dimensions after features of 3"):
        sums.update(np.ones((2, 4)), np.array([0, 1]))


def mean_as_loops(features, labels):
    """Eq. 7 and 10, image by image and number by number."""
    means = {}
    for c in sorted(set(labels.tolist())):
        total, count = [0.0] * features.shape[1], 0
        for row, label in zip(features.tolist(), labels.tolist(), strict=True):
            if label == c:
                total, count = [t + x for t, x in zip(total, row, strict=True)], count + 1
        means[c] = [t / count for t in total]
    return means


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_agrees_with_eq_7_and_10_written_as_loops(dtype):
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(40, 5)).astype(dtype), rng.choice([2, 3, 11], size=40)
    sums = ClassSums().update(features, labels)
    expected = mean_as_loops(features.astype(np.float64), labels)
    assert sums.classes.tolist() == list(expected)
    assert sums.centroids() == pytest.approx(np.array(list(expected.values())), abs=1e-12)
