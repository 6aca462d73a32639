"""What a run warns of in its labels."""

from __future__ import annotations

from tests.conftest import picture

from justright.data import merge_pool, open_images
from justright.runs.problem import OWN
from justright.runs.source_checks import label_warnings


def test_clean_labels_give_no_warning(make_tree):
    sets = [open_images(make_tree({"cat": 2, "dog": 2}, "own")).named(OWN)]
    sets.append(open_images(make_tree({"Cat": 2}, "pets", 9)))  # another data set may spell as it likes
    assert label_warnings(merge_pool(sets)) == []


def test_similar_names_are_shown_escaped(make_tree):
    pool = merge_pool([open_images(make_tree({"cat": 1, "Cat": 1, "dog": 1, "dog\u200b": 1}, "own")).named(OWN)])
    (said,) = label_warnings(pool)
    assert "'Cat' and 'cat'; 'dog' and 'dog\\u200b'" in said
    assert "by case or by invisible characters" in said


def test_names_of_the_target_are_compared(make_tree):
    pool = merge_pool([open_images(make_tree({"cat": 1}, "own")).named(OWN)])
    assert label_warnings(pool, ["dog", "cat"]) == []
    assert "'CAT' and 'cat'" in label_warnings(pool, ["dog", "CAT"])[0]


def test_image_with_two_classes_is_shown_with_both_paths(make_tree):
    root = make_tree({"cat": 2, "dog": 2}, "own")
    picture(0).save(root / "dog" / "again.png")
    (said,) = label_warnings(merge_pool([open_images(root).named(OWN)]))
    assert said.startswith("1 labeled image has several classes, such as ")
    assert f"{root}/cat/0.png ('cat') and {root}/dog/again.png ('dog')" in said


def test_names_are_compared_between_data_sets(make_tree):
    own = open_images(make_tree({"cat": 2}, "own")).named(OWN)
    assert label_warnings(merge_pool([own, open_images(make_tree({"001.Cat": 2}, "pets"))])) == []
    (said,) = label_warnings(merge_pool([own, open_images(make_tree({"lynx": 2}, "zoo"))]))
    assert said.startswith("2 labeled images have several classes")
    assert "'zoo/lynx'" in said


def test_unreadable_images_are_not_copies(make_tree):
    root = make_tree({"cat": 2, "dog": 2}, "own")
    images = open_images(root).named(OWN)
    for name in ("cat", "dog"):
        (root / name / "1.png").unlink()
    assert label_warnings(merge_pool([images])) == []
