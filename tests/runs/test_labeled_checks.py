"""What a run warns of in its labels."""

from __future__ import annotations

from tests.conftest import picture

from justright.data import merge_pool, open_images
from justright.runs.labeled_checks import label_warnings
from justright.runs.problem import OWN, named


def test_labels_without_doubt_are_not_spoken_of(make_tree):
    sets = [named(open_images(make_tree({"cat": 2, "dog": 2}, "own")), OWN)]
    sets.append(open_images(make_tree({"Cat": 2}, "pets", 9)))  # another data set may spell as it likes
    assert label_warnings(merge_pool(sets)) == []


def test_names_that_look_alike_are_shown_so_that_the_difference_is_seen(make_tree):
    pool = merge_pool([named(open_images(make_tree({"cat": 1, "Cat": 1, "dog": 1, "dog\u200b": 1}, "own")), OWN)])
    (said,) = label_warnings(pool)
    assert "'Cat' and 'cat'; 'dog' and 'dog\\u200b'" in said
    assert "by case or by characters that do not show" in said


def test_names_of_the_target_count_where_it_is_judged(make_tree):
    pool = merge_pool([named(open_images(make_tree({"cat": 1}, "own")), OWN)])
    assert label_warnings(pool, ["dog", "cat"]) == []
    assert "'CAT' and 'cat'" in label_warnings(pool, ["dog", "CAT"])[0]


def test_an_image_with_two_classes_is_told_with_both_places(make_tree):
    root = make_tree({"cat": 2, "dog": 2}, "own")
    picture(0).save(root / "dog" / "again.png")
    (said,) = label_warnings(merge_pool([named(open_images(root), OWN)]))
    assert said.startswith("1 labeled image has several classes, such as ")
    assert f"{root}/cat/0.png ('cat') and {root}/dog/again.png ('dog')" in said


def test_between_data_sets_names_are_compared(make_tree):
    own = named(open_images(make_tree({"cat": 2}, "own")), OWN)
    assert label_warnings(merge_pool([own, open_images(make_tree({"001.Cat": 2}, "pets"))])) == []
    (said,) = label_warnings(merge_pool([own, open_images(make_tree({"lynx": 2}, "zoo"))]))
    assert said.startswith("2 labeled images have several classes")
    assert "'zoo/lynx'" in said


def test_unreadable_images_are_no_copies_of_each_other(make_tree):
    root = make_tree({"cat": 2, "dog": 2}, "own")
    images = named(open_images(root), OWN)
    for name in ("cat", "dog"):
        (root / name / "1.png").unlink()
    assert label_warnings(merge_pool([images])) == []
