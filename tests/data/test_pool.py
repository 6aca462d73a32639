from __future__ import annotations

from dataclasses import replace

import pytest

from justright.data import Origin, gcd_split, merge_pool, open_folder, open_images
from justright.data.splits import first_half
from justright.utils.errors import DataError


@pytest.fixture
def two(make_tree):
    return [
        open_folder(make_tree({"crow": 3, "wren": 2}, name="birds")),
        open_folder(make_tree({"crow": 4}, name="logos", first_seed=50)),
    ]


def test_classes_are_named_by_data_set_and_keep_their_origin(two):
    pool = merge_pool(two)
    assert pool.images.classes == {0: "birds/crow", 1: "birds/wren", 2: "logos/crow"}
    assert pool.images.labels.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 2]
    assert pool.origins[2] == Origin("logos", 0, "crow")
    assert [pool.images.image(i).tobytes() for i in (0, 8)] == [two[0].image(0).tobytes(), two[1].image(3).tobytes()]


def test_caps_do_not_depend_on_the_rest_of_the_pool(two):
    capped = merge_pool(two, max_per_class=2)
    assert capped.images.labels.tolist() == [0, 0, 1, 1, 2, 2]
    alone = merge_pool(two[1:], max_per_class=2)
    assert alone.images.paths == capped.images.paths[4:]
    assert merge_pool(two, max_per_class=99).images.paths == merge_pool(two).images.paths


def test_draw_is_repeatable(make_tree):
    many = [open_folder(make_tree({"a": 40}))]
    assert merge_pool(many, max_per_class=20).images.paths == merge_pool(many, max_per_class=20).images.paths


def test_labels_with_gaps_are_closed(two):
    pool = merge_pool([two[0].of_classes([1]), two[1]])
    assert pool.images.classes == {0: "birds/wren", 1: "logos/crow"}
    assert pool.origins[0] == Origin("birds", 1, "wren")


def test_target_keeps_old_and_new_classes_in_a_pool(two):
    split, _ = gcd_split(two[0], first_half([0, 1]))
    pool = merge_pool([split.labeled, two[1]])
    joined = replace(split, labeled=pool.images)
    assert joined.old_classes == (0,)
    assert joined.classes.new == (1,)
    assert pool.origins[0].label in joined.old_classes


def test_pool_survives_saving(two, tmp_path):
    pool = merge_pool(two)
    pool.images.save(tmp_path / "pool.parquet")
    again = open_images(tmp_path / "pool.parquet")
    assert again.classes == pool.images.classes
    assert again.image(8).tobytes() == pool.images.image(8).tobytes()


def test_unlabeled_or_duplicate_sets_are_rejected(two, make_tree):
    with pytest.raises(DataError, match="pool is empty"):
        merge_pool([])
    with pytest.raises(DataError, match="no labeled images"):
        merge_pool([two[0].take([])])
    with pytest.raises(DataError, match="two sets of the pool are called 'birds'"):
        merge_pool([two[0], two[0]])
    with pytest.raises(DataError, match=r"5 of .* have no label"):
        merge_pool([two[0].without_labels()])
    with pytest.raises(DataError, match="a cap of 0"):
        merge_pool(two, max_per_class=0)
