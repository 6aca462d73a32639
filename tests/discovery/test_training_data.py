from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.discovery.tiny import drawn_images, drawn_split

from justright.data.image_set import ImageSet
from justright.data.pool import merge_pool
from justright.data.splits import Split
from justright.discovery.training_data import TrainingData, total_categories
from justright.utils.errors import DataError, DegenerateError

NEW = drawn_split().classes


def split_of(labels, n_unlabeled=5):
    target = drawn_images([0] * 5, seed=1).without_labels()
    return Split(drawn_images(labels), target.take(range(n_unlabeled)), NEW)


def test_labeled_images_come_first_in_label_order():
    data = TrainingData.of(split_of([30, 2, 7, 30]))
    assert data.n_labeled == 4
    assert data.labels.tolist() == [2, 0, 1, 2, -1, -1, -1, -1, -1]
    assert data.known == ("2", "7", "30")
    assert data.known_labels == (2, 7, 30)
    assert data.labeled.tolist() == [0, 1, 2, 3]
    assert data.unlabeled.tolist() == [4, 5, 6, 7, 8]
    assert data.weight.tolist() == [1.0] * 9
    assert data.chance is None


def test_hard_weight_0_removes_images():
    data = TrainingData.of(split_of([3, 3, 8, 9]), np.array([1.0, 0, 0, 1]))
    assert data.labeled.tolist() == [0, 3]
    assert data.seen.tolist() == [0, 3, 4, 5, 6, 7, 8]
    assert data.known_labels == (3, 9)
    assert data.labels[[0, 3]].tolist() == [0, 1]
    assert data.weight.tolist() == [1.0] * 9
    assert len(data.batches(2, seed=0)) == 2 + 5
    assert data.batches(2, seed=0).n_steps == 3


def test_soft_weight_0_leaves_the_batches():
    data = TrainingData.of(split_of([3, 3, 8, 9]), np.array([0.5, 0, 0, 2]))
    assert data.labeled.tolist() == [0, 3]
    assert data.known_labels == (3, 9)
    assert data.labels[:4].tolist() == [0, 0, 2, 1]  # 8 has no weight, hence no category
    assert data.weight[:4].tolist() == [0.5, 0, 0, 2]
    assert len(data.batches(2, seed=0)) == 2 + 5
    assert not np.isin(data.batches(100, seed=0).rows(0, n_steps=20), [1, 2]).any()


def test_guide_classes_follow_known_ones_in_separate_batches():
    split = replace(split_of([3, 3, 8, 9, 5]), guide_classes=(3, 5))
    data = TrainingData.of(split, np.array([1.0, 1, 1, 1, 0]), held_out_share=0.5)
    assert data.known_labels == (8, 9)
    assert data.labels[:5].tolist() == [2, 2, 0, 1, 3]
    assert data.labeled.tolist() == [2, 3]
    assert data.guides.tolist() == [0, 1]  # 5 has weight 0, and no guide is held out
    assert not np.isin(data.batches(100, seed=0).rows(0, n_steps=20), [0, 1, 4]).any()


def test_guides_of_weight_0_equal_no_guides():
    data = TrainingData.of(replace(split_of([3, 5]), guide_classes=(3, 5)), np.zeros(2))
    assert data.known == ()
    assert len(data.labeled) == len(data.guides) == 0


def test_resampling_leaves_the_losses_unweighted():
    data = TrainingData.of(split_of([3, 3, 8, 9]), np.array([0.5, 0, 0, 2]), "resample")
    assert data.weight.tolist() == [1.0] * 9
    assert data.labeled.tolist() == [0, 3]
    drawn = data.batches(100, seed=0).rows(0, n_steps=100)
    assert 0.47 < (drawn < 4).mean() < 0.53
    assert 3.5 < (drawn == 3).sum() / (drawn == 0).sum() < 4.5
    assert not np.isin(drawn, [1, 2]).any()


@pytest.mark.parametrize(
    ("weight", "expected"),
    [([1.0, 1, 1, 1], "hard"), ([0.0, 1, 1, 0], "hard"), ([0.0, 1, 1, 0.5], "soft"), ([2.0, 2, 2, 2], "soft")],
)
def test_only_weights_of_0_and_1_are_hard(weight, expected):
    split, weight = split_of([3, 3, 8, 9]), np.array(weight)
    assert TrainingData.of(split, weight).fingerprint == TrainingData.of(split, weight, expected).fingerprint


@pytest.mark.parametrize(
    ("weight", "weighting", "error"),
    [
        ([1.0, -0.1, 1, 1], "auto", "below 0"),
        ([1.0, np.nan, 1, 1], "auto", "not finite"),
        ([0.0, 0, 0, 0], "auto", "every labeled image weighs 0"),
        ([1.0, 0.5, 1, 1], "hard", "weights such as 0.5"),
    ],
)
def test_invalid_weights_are_rejected(weight, weighting, error):
    with pytest.raises((DataError, DegenerateError), match=error):
        TrainingData.of(split_of([3, 3, 8, 9]), np.array(weight), weighting)


def test_invalid_training_data_is_rejected():
    with pytest.raises(DegenerateError, match="no unlabeled images"):
        TrainingData.of(split_of([1, 2], n_unlabeled=0))
    with pytest.raises(DataError, match="1 labeled images have no label"):
        TrainingData.of(split_of([1, -1]))


def test_split_without_labels_is_the_target_only():
    split = split_of([1, 2])
    data = TrainingData.of(replace(split, labeled=split.labeled.take([])))
    assert data.known == ()
    assert data.n_labeled == 0
    assert data.labels.tolist() == [-1] * 5
    assert len(data.batches(2, seed=0)) == 5


def test_without_labels_keeps_the_target_only():
    data = TrainingData.of(split_of([1, 2, 2]), held_out_share=0.5).without_labels()
    assert data.known == ()
    assert data.known_labels == ()
    assert len(data.labeled) == 0
    assert not data.is_held_out.any()
    assert data.unlabeled.tolist() == [3, 4, 5, 6, 7]


def test_held_out_share_leaves_images_of_each_class():
    labels = [0] * 10 + [1] * 5 + [2] * 2 + [3]
    data = TrainingData.of(split_of(labels), held_out_share=0.4)
    n_held_out = [int(data.is_held_out[:18][np.array(labels) == label].sum()) for label in range(4)]
    assert n_held_out == [4, 2, 1, 0]
    assert not set(np.flatnonzero(data.is_held_out)) & set(data.labeled.tolist())
    assert not data.is_held_out[data.n_labeled :].any()
    assert set(data.labels[data.labeled]) == {0, 1, 2, 3}


@given(st.lists(st.sampled_from([0.0, 0.3, 1.0, 2.5]), min_size=12, max_size=12), st.sampled_from(["auto", "resample"]))
@settings(max_examples=40, deadline=None)
def test_classes_of_positive_weight_are_known_and_first(weight, weighting):
    if not any(weight):
        return
    labels = np.repeat([4, 1, 9, 6], 3)
    data = TrainingData.of(split_of(labels.tolist()), np.array(weight), weighting)
    has_weight = [label for label in (1, 4, 6, 9) if any(np.array(weight)[labels == label])]
    assert list(data.known_labels) == has_weight
    for row in range(12):
        is_known = labels[row] in has_weight
        assert (data.labels[row] < len(has_weight)) == is_known
        if is_known:
            assert data.known_labels[data.labels[row]] == labels[row]
    assert set(data.labels[data.labeled].tolist()) == set(range(len(has_weight)))


def test_equal_names_in_two_pools_stay_separate():
    cats = {"a": drawn_images([0, 1, 1], "a"), "b": drawn_images([0, 0, 5], "b", seed=1)}
    pool = merge_pool(list(cats.values()))
    split = Split(pool.images, drawn_images([0] * 4, "target", seed=2).without_labels(), NEW)
    data = TrainingData.of(split)
    assert data.known == ("a/0", "a/1", "b/0", "b/5")
    assert data.labels[:6].tolist() == [0, 1, 1, 2, 2, 3]
    dropped = TrainingData.of(split, (split.labeled.labels != 1).astype(float))
    assert dropped.known == ("a/0", "b/0", "b/5")
    assert dropped.known_labels == (0, 2, 3)


def test_categories_include_kept_classes_the_target_lacks():
    assert total_categories(kept={0, 1, 5, 6}, own={0, 1}, n_target=4) == 6
    assert total_categories(kept={0, 5}, own={0, 1}, n_target=4) == 5  # 1 was dropped, and is still in the target
    assert total_categories(kept=set(), own=(), n_target=4) == 4
    assert total_categories(kept=[5, 5, 6], own=(), n_target=4) == 6


def test_fingerprint_reflects_changes():
    split, weight = split_of([3, 3, 8, 9]), np.array([0.5, 0.1, 1.0, 2.0])
    first = TrainingData.of(split, weight).fingerprint
    assert TrainingData.of(split, weight.copy()).fingerprint == first
    other = TrainingData.of(split, weight + 1e-12).fingerprint
    assert {name for name in first if first[name] != other[name]} == {"weights"}
    swapped = Split(split.labeled.take([1, 0, 2, 3]), split.unlabeled, NEW)
    assert TrainingData.of(swapped, weight).fingerprint["labeled_images"] != first["labeled_images"]
    resampled = TrainingData.of(split, weight, "resample").fingerprint
    assert {name for name in first if first[name] != resampled[name]} == {"weights", "chance"}


def test_images_keep_their_ids_and_order(split):
    data = TrainingData.of(split)
    assert isinstance(data.images, ImageSet)
    assert data.images.ids == split.labeled.ids + split.unlabeled.ids


def test_labeled_target_image_is_seen_once():
    labeled = drawn_images([3, 3, 8, 9])
    others = drawn_images([0] * 3, seed=1)
    target = ImageSet.concat([others.take([0]), labeled.take([2, 0]), others.take([1, 2])]).without_labels()
    contents = labeled.content_ids()
    split = Split(labeled, target, NEW, given={contents[2]: 8, contents[0]: 3, others.content_ids()[2]: 9})
    data = TrainingData.of(split, held_out_share=0.5)
    assert data.given.tolist() == [-1, 1, 0, -1, 2]
    assert data.unlabeled.tolist() == [4, 7, 8], "the last one has a given label but is no labeled image"
    assert not set(data.seen.tolist()) & {5, 6}
    assert data.of_target(np.array([5, 5, 5])).tolist() == [5, 1, 0, 5, 5]
    assert data.without_labels().given.tolist() == [-1] * 5
    assert len(data.without_labels().unlabeled) == 5
    dropped = TrainingData.of(split, np.array([1.0, 1, 0, 1]))
    assert dropped.given.tolist() == [-1, -1, 0, -1, 1], "given labels of a class of weight 0 are ignored"
    assert 5 in dropped.unlabeled
