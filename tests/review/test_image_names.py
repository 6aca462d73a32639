from __future__ import annotations

import zipfile

import pytest

from justright.data import ImageSet, open_images
from justright.review.image_names import ImageNames


@pytest.fixture
def names(make_tree):
    return ImageNames(open_images(make_tree({"birds": 2, "cats/wild": 2})))


def test_names_are_paths_below_the_folder_of_the_run(names, tmp_path):
    assert names.root == tmp_path / "photos"
    assert names.names == ["birds/0.png", "birds/1.png", "cats/wild/0.png", "cats/wild/1.png"]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("birds/1.png", [1]),
        ("./birds/1.png", [1]),
        ("birds\\1.png", [1]),
        ("photos/birds/1.png", [1]),
        ("images/birds/1.png", [1]),
        ("images/default/birds/1.png", [1]),
        ("data/cats/wild/0.png", [2]),
        ("{root}/birds/1.png", [1]),
        ("other/birds/1.png", []),
        ("photos/other/birds/1.png", []),
        ("wild/0.png", []),
        ("1.png", []),
        ("7.png", []),
        ("", []),
        ("..", []),
    ],
)
def test_a_path_names_an_image_of_the_run_or_none(names, name, rows):
    assert names.rows_of(name.replace("{root}", str(names.root))) == rows


def test_folders_may_be_left_out_where_the_name_is_unique(make_tree):
    root = make_tree({"birds": 2})
    (root / "birds" / "1.png").rename(root / "birds" / "wren.png")
    names = ImageNames(open_images(root))
    assert names.rows_of("wren.png") == [1]
    assert names.name_of_stem("wren") == "birds/wren.png"
    assert names.name_of_stem("eagle") == "eagle"


def test_several_folders_have_their_common_one_as_root(make_tree, tmp_path):
    sets = [open_images(make_tree({"a": 1}, name)) for name in ("first", "second")]
    names = ImageNames(ImageSet.concat(sets))
    assert names.root == tmp_path
    assert names.names == ["first/a/0.png", "second/a/0.png"]


def test_keys_without_endings_are_unique(tmp_path, make_tree):
    root = make_tree({"a": 1})
    (root / "a" / "0.webp").write_bytes((root / "a" / "0.png").read_bytes())
    names = ImageNames(open_images(root))
    assert len(set(names.stems)) == 2
    assert [names.name_of_stem(stem) for stem in names.stems] == names.names


def test_images_in_a_zip_get_safe_names(make_tree, tmp_path):
    data = (make_tree({"a": 1}) / "a" / "0.png").read_bytes()
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        for name in ("a/x.png", "a/X.png", "con/y.png", "what?/z.png"):
            archive.writestr(name, data)
    names = ImageNames(open_images(tmp_path / "b.zip"))
    assert names.root is None
    assert sorted(names.names) == ["_con/y.png", "a/X.png", "a/x-1.png", "what_/z.png"]
    assert [names.rows_of(name) for name in names.names] == [[0], [1], [2], [3]]
