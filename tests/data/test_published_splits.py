from __future__ import annotations

import pytest

from justright.data import ClassSplit, ImageSet, glyph_set, read_class_split
from justright.data.catalog.glyphs import classes_of
from justright.data.class_split import UNGRADED
from justright.data.published_splits import exchanged, published_split
from justright.data.readers import FolderReader
from justright.utils.errors import DataError


def named(dataset, n_classes, tmp_path):
    labels = list(range(n_classes))
    names = [f"class {label}" for label in labels]
    return ImageSet.of(FolderReader(tmp_path), dataset=dataset, path=names, label=labels, class_name=names)


N_CLASSES = {"cub": 200, "cars": 196, "aircraft": 100}


@pytest.mark.parametrize(("name", "file"), [("cub", "cub"), ("cars", "scars"), ("aircraft", "aircraft")])
def test_the_classes_of_ssb_are_those_of_its_files(real_data, tmp_path, name, file):
    public = read_class_split(real_data / "ssb" / f"{file}_ssb_splits.json")
    own, said = published_split(named(name, N_CLASSES[name], tmp_path))
    assert set(own.old) == set(public.old)
    assert {group: set(labels) for group, labels in own.groups.items()} == {
        group: set(labels) for group, labels in public.groups.items()
    }
    assert "SSB" in said


@pytest.mark.parametrize(("name", "sizes"), [("cub", [34, 34, 32]), ("cars", [7, 15, 76]), ("aircraft", [13, 17, 20])])
def test_each_class_of_ssb_is_old_or_in_one_group(tmp_path, name, sizes):
    split, _ = published_split(named(name, N_CLASSES[name], tmp_path))
    assert [len(labels) for labels in split.groups.values()] == sizes
    assert sorted(split.old + split.new) == list(range(2 * len(split.old)))


def test_other_data_sets_follow_their_rules(tmp_path):
    assert published_split(named("imagenet100", 10, tmp_path))[0].old == (0, 1, 2, 3, 4)
    assert published_split(named("imagenet1k-ssb", 1003, tmp_path))[0].new == (1000, 1001, 1002)
    drawn, said = published_split(named("herbarium19", 683, tmp_path))
    assert len(drawn.old) == 341
    assert "random half" in said


@pytest.mark.parametrize(("name", "n_classes"), [("cars", 6), ("cub", 201), ("imagenet1k-ssb", 8)])
def test_a_folder_that_only_has_the_name_of_a_published_set_is_halved_at_random(tmp_path, name, n_classes):
    split, said = published_split(named(name, n_classes, tmp_path))
    assert sorted(split.old + split.new) == list(range(n_classes))
    assert len(split.old) == n_classes // 2
    assert said == "a random half of the classes is old"


def test_exchanged_classes_of_a_group_are_old_and_the_old_ones_new(tmp_path):
    images = named("cub", 200, tmp_path)
    split, _ = published_split(images)
    swapped = exchanged(split, "Medium", images)
    assert swapped.old == split.groups["Medium"]
    assert set(swapped.new) == set(split.old)


def test_super_categories_grade_in_thirds_where_nobody_else_did(tmp_path):
    images = glyph_set(1, ["hebrew", "nko", "faces", "symbols", "ogham"])
    near = [glyph.label for glyph in classes_of("hebrew", "faces")]
    far = [glyph.label for glyph in classes_of("ogham")]
    split = ClassSplit(tuple(near[::2]), {UNGRADED: (*near[1::2], *far)})
    groups = [exchanged(split, group, images) for group in ("Similar", "Medium", "Dissimilar")]
    assert all(each.new == split.old for each in groups)
    assert set(groups[0].old) <= set(near)
    assert set(groups[2].old) <= set(far)
    assert max(len(each.old) for each in groups) - min(len(each.old) for each in groups) <= 1
    with pytest.raises(DataError, match="no difficulty group 'Near'"):
        exchanged(split, "Near", images)
    bare = named("cars-of-mine", 6, tmp_path)
    with pytest.raises(DataError, match=r"no class of .* is called Medium"):
        exchanged(published_split(bare)[0], "Medium", bare)
