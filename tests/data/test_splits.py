"""Class splits, published splits, the GCD protocol and the sealed truth."""

from __future__ import annotations

import ast
import gc
import json
import pickle
from dataclasses import replace
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import justright
from justright.data import (
    ClassSplit,
    ImageSet,
    Truth,
    first_half,
    gcd_split,
    glyph_set,
    graded,
    open_folder,
    open_images,
    random_half,
    read_class_split,
)
from justright.data.catalog.glyphs import classes_of
from justright.data.readers import FolderReader
from justright.data.splits import UNGRADED, exchanged, published_split
from justright.utils.errors import DataError, MissingDataError
from justright.utils.types import UNLABELED


def test_split_is_saved_in_ssbs_schema(tmp_path):
    split = ClassSplit((3, 1), {"Similar": (0,), "Medium": (2, 5), "Dissimilar": ()})
    split.save(tmp_path / "split.json")
    assert json.loads((tmp_path / "split.json").read_text()) == {
        "known_classes": [3, 1],
        "unknown_classes": {"Hard": [0], "Medium": [2, 5], "Easy": []},
    }
    assert read_class_split(tmp_path / "split.json") == split
    assert split.new == (0, 2, 5)


def test_text_classes_are_looked_up_by_name(tmp_path):
    path = tmp_path / "imagenet.json"
    path.write_text(json.dumps({"known_classes": ["n02", "n01"], "unknown_classes": {"Easy": ["n03"], "Hard": []}}))
    assert read_class_split(path, {0: "n01", 1: "n02", 2: "n03"}).old == (1, 0)
    with pytest.raises(DataError, match="names the class 'n02'"):
        read_class_split(path)


@pytest.mark.parametrize(
    ("name", "known", "sizes"), [("cub", 100, [34, 34, 32]), ("scars", 98, [7, 15, 76]), ("aircraft", 50, [13, 17, 20])]
)
def test_public_ssb_files_read(real_data, name, known, sizes):
    split = read_class_split(real_data / "ssb" / f"{name}_ssb_splits.json")
    assert len(split.old) == known
    assert [len(labels) for labels in split.groups.values()] == sizes
    assert sorted(split.old + split.new) == list(range(known + sum(sizes)))


@pytest.mark.parametrize("name", ["osr_splits.pkl", "renamed.json"])
def test_pickle_is_rejected_unread_with_a_pointer_to_the_json(tmp_path, name):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was executed",))

    (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(DataError, match=r"sgvaze/SSB.*\.json"):
        read_class_split(tmp_path / name)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1, 2]",
        "{}",
        '{"known_classes": [0], "unknown_classes": 3}',
        '{"known_classes": 1, "unknown_classes": {"Easy": [2]}}',
    ],
)
def test_file_of_another_shape_is_rejected(tmp_path, text):
    (tmp_path / "split.json").write_text(text)
    with pytest.raises(DataError, match="not a class split"):
        read_class_split(tmp_path / "split.json")


def test_classes_are_old_or_new_and_both_exist():
    with pytest.raises(DataError, match="twice"):
        ClassSplit((1, 2), {"Medium": (2,)})
    with pytest.raises(DataError, match="1 old and 0 new"):
        ClassSplit((1,), {"Medium": ()})


def test_missing_file_is_reported(tmp_path):
    with pytest.raises(MissingDataError, match=r"nowhere\.json"):
        read_class_split(tmp_path / "nowhere.json")


def test_herbariums_half_is_the_legacy_draw_of_341_from_683():
    published = np.random.RandomState(0).choice(range(683), 341, replace=False)
    assert random_half(range(683)).old == tuple(published.tolist())
    assert len(random_half(range(683)).new) == 342


def test_imagenet_100_knows_its_first_fifty_classes():
    assert first_half(range(100)).old == tuple(range(50))
    assert first_half(range(100)).new == tuple(range(50, 100))


PATHS = {
    0: ("bird", "gull"),
    1: ("bird", "gull"),  # shares all of its path with 0
    2: ("bird", "owl"),  # shares half
    3: ("fish", "eel"),  # shares nothing
}


def test_new_classes_are_graded_by_common_path():
    groups = graded(ClassSplit((0,), {"": (1, 2, 3)}), PATHS).groups
    assert groups == {"Similar": (1,), "Medium": (2,), "Dissimilar": (3,)}


def test_grading_agrees_with_loops_over_all_pairs():
    rng = np.random.default_rng(0)
    paths = {label: tuple(str(rng.integers(2)) for _ in range(rng.integers(1, 5))) for label in range(40)}
    old, new = tuple(range(20)), tuple(range(20, 40))

    def share(a: int) -> float:
        best = 0.0
        for b in old:
            common = 0
            for x, y in zip(paths[a], paths[b], strict=False):
                if x != y:
                    break
                common += 1
            best = max(best, common / len(paths[a]))
        return best

    groups = list(graded(ClassSplit(old, {"": new}), paths).groups.values())
    assert sorted(label for labels in groups for label in labels) == list(new)
    shares = [[share(label) for label in labels] for labels in groups]
    assert min(shares[0], default=1) >= max(shares[1], default=0)
    assert min(shares[1], default=1) >= max(shares[2], default=0)
    flat = [value for values in shares for value in set(values)]
    assert len(flat) == len(set(flat)), "classes of equal share were separated"


def test_equal_hierarchies_are_all_medium():
    assert graded(ClassSplit((0,), {"": (1, 2)}), dict.fromkeys(range(3), ("x",))).groups["Medium"] == (1, 2)
    assert graded(first_half(range(4)), dict.fromkeys(range(4), ())).groups["Medium"] == (2, 3)


def named(dataset, n_classes, tmp_path):
    labels = list(range(n_classes))
    names = [f"class {label}" for label in labels]
    return ImageSet.of(FolderReader(tmp_path), dataset=dataset, path=names, label=labels, class_name=names)


N_CLASSES = {"cub": 200, "cars": 196, "aircraft": 100}


@pytest.mark.parametrize(("name", "file"), [("cub", "cub"), ("cars", "scars"), ("aircraft", "aircraft")])
def test_classes_of_ssb_are_those_of_its_files(real_data, tmp_path, name, file):
    public = read_class_split(real_data / "ssb" / f"{file}_ssb_splits.json")
    own, rule = published_split(named(name, N_CLASSES[name], tmp_path))
    assert set(own.old) == set(public.old)
    assert {group: set(labels) for group, labels in own.groups.items()} == {
        group: set(labels) for group, labels in public.groups.items()
    }
    assert "SSB" in rule


@pytest.mark.parametrize(("name", "sizes"), [("cub", [34, 34, 32]), ("cars", [7, 15, 76]), ("aircraft", [13, 17, 20])])
def test_each_class_of_ssb_is_old_or_in_one_group(tmp_path, name, sizes):
    split, _ = published_split(named(name, N_CLASSES[name], tmp_path))
    assert [len(labels) for labels in split.groups.values()] == sizes
    assert sorted(split.old + split.new) == list(range(2 * len(split.old)))


def test_other_data_sets_follow_their_rules(tmp_path):
    assert published_split(named("imagenet100", 10, tmp_path))[0].old == (0, 1, 2, 3, 4)
    assert published_split(named("imagenet1k-ssb", 1003, tmp_path))[0].new == (1000, 1001, 1002)
    drawn, rule = published_split(named("herbarium19", 683, tmp_path))
    assert len(drawn.old) == 341
    assert "random half" in rule


@pytest.mark.parametrize(("name", "n_classes"), [("cars", 6), ("cub", 201), ("imagenet1k-ssb", 8)])
def test_folder_named_like_a_published_set_gets_a_random_half(tmp_path, name, n_classes):
    split, rule = published_split(named(name, n_classes, tmp_path))
    assert sorted(split.old + split.new) == list(range(n_classes))
    assert len(split.old) == n_classes // 2
    assert rule == "a random half of the classes is old"


def test_exchanged_classes_of_a_group_are_old_and_the_old_ones_new(tmp_path):
    images = named("cub", 200, tmp_path)
    split, _ = published_split(images)
    swapped = exchanged(split, "Medium", images)
    assert swapped.old == split.groups["Medium"]
    assert set(swapped.new) == set(split.old)


def test_ungraded_classes_are_graded_by_super_categories(tmp_path):
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
    with pytest.raises(DataError, match="has no Medium classes"):
        exchanged(published_split(bare)[0], "Medium", bare)


@pytest.fixture
def photos(make_tree):
    return open_folder(make_tree({"a": 6, "b": 5, "c": 4, "d": 3}))


CLASSES = ClassSplit((0, 2), {"Similar": (1,), "Dissimilar": (3,)})


def test_labeled_half_is_drawn_by_the_legacy_generator(photos):
    split, _ = gcd_split(photos, CLASSES)
    of_old = [path for path, label in zip(photos.paths, photos.labels, strict=True) if label in (0, 2)]
    drawn = np.random.RandomState(0).choice(range(len(of_old)), replace=False, size=int(0.5 * len(of_old)))
    assert split.labeled.paths == [of_old[i] for i in sorted(drawn)]
    assert set(split.labeled.labels.tolist()) <= {0, 2}


def test_unlabeled_is_everything_else_in_order_and_without_labels(photos):
    split, truth = gcd_split(photos, CLASSES)
    assert split.unlabeled.paths == [path for path in photos.paths if path not in split.labeled.paths]
    assert set(split.unlabeled.labels.tolist()) == {UNLABELED}
    labels, is_old = truth.open_for_evaluation()
    assert [photos.classes[label] for label in labels] == [path[0] for path in split.unlabeled.paths]
    assert is_old.tolist() == [path[0] in "ac" for path in split.unlabeled.paths]


def test_split_knows_the_roles_of_the_classes(photos):
    split, _ = gcd_split(photos, CLASSES)
    assert split.old_classes == (0, 2)
    assert split.classes.new == (1, 3)
    assert split.classes.groups == {"Similar": (1,), "Dissimilar": (3,)}


def test_another_seed_draws_other_images(photos):
    assert gcd_split(photos, CLASSES, seed=1)[0].labeled.paths != gcd_split(photos, CLASSES)[0].labeled.paths


def test_split_of_another_data_set_is_rejected(photos):
    with pytest.raises(DataError, match=r"1 classes that .* lacks, such as \[9\]"):
        gcd_split(photos, ClassSplit((0,), {"Medium": (9,)}))
    with pytest.raises(DataError, match="between 0 and 1"):
        gcd_split(photos, CLASSES, labeled_share=1.5)


def test_birds_split_as_published(real_data):
    birds = open_images(real_data / "cub200.zip").of_split("train")
    split, truth = gcd_split(birds, read_class_split(real_data / "ssb" / "cub_ssb_splits.json"))
    # 5,994 official images give 1,498 and 4,496; the copy lacks one image
    assert abs(len(split.labeled) - 1498) <= 1
    assert abs(len(split.unlabeled) - 4496) <= 1
    _, is_old = truth.open_for_evaluation()
    assert is_old.mean() == pytest.approx(1 / 3, abs=0.01)


MAY_OPEN = {"data", "evaluation", "runs", "benchmark", "report", "cli"}
"""`data` makes a Truth; the others compare predictions with it."""


@pytest.fixture
def sealed(make_tree):
    photos = open_folder(make_tree({"birds/crow": 6, "birds/wren": 5, "fish/eel": 4}))
    return gcd_split(photos, ClassSplit((0,), {"Similar": (1, 2)}))


def reachable(start: object) -> list[object]:
    """Every object that can be reached from `start`, except code and modules."""
    seen, pending = {}, [start]
    while pending:
        thing = pending.pop()
        if id(thing) in seen or isinstance(thing, type | ModuleType | FunctionType):
            continue
        seen[id(thing)] = thing
        pending += gc.get_referents(thing)
        pending += list(vars(thing).values()) if hasattr(thing, "__dict__") else []
        if isinstance(thing, pa.Table):
            pending += thing.columns
        if isinstance(thing, ImageSet):
            pending += [thing.labels, thing.classes, thing.hierarchy]
    return list(seen.values())


def holds(thing: object, labels: np.ndarray) -> bool:
    if isinstance(thing, np.ndarray | pa.ChunkedArray | pa.Array) and len(thing) == len(labels):
        values = thing.tolist() if isinstance(thing, np.ndarray) else thing.to_pylist()
        return values == labels.tolist()
    return isinstance(thing, list | tuple) and len(thing) == len(labels) and list(thing) == labels.tolist()


def test_split_holds_no_target_labels(sealed):
    split, truth = sealed
    labels, _ = truth.open_for_evaluation()
    found = reachable(split)
    assert not [thing for thing in found if isinstance(thing, Truth)]
    assert not [thing for thing in found if holds(thing, labels)]
    for column in split.unlabeled.table.columns:
        if pa.types.is_dictionary(column.type):
            words = {word for chunk in column.chunks for word in chunk.dictionary.to_pylist()}
            assert not words & {"birds/wren", "fish/eel", "birds", "fish"}, "a class name is left in a dictionary"


def test_label_search_finds_a_leak(sealed):
    split, truth = sealed
    labels, _ = truth.open_for_evaluation()
    leaky = replace(split, labeled=truth._images)
    assert any(holds(thing, labels) for thing in reachable(leaky))


def test_only_evaluation_and_higher_layers_use_the_truth():
    source = Path(justright.__file__).parent
    offenders = []
    for file in source.rglob("*.py"):
        package = file.relative_to(source).parts[0].removesuffix(".py")
        if package in MAY_OPEN or package == "__init__":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            name = getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "name", None)
            if name in {"Truth", "open_for_evaluation"}:
                offenders.append(f"{file.relative_to(source)}:{node.lineno}")
    assert offenders == []


def test_truth_hides_labels_in_repr_and_pickle(sealed):
    _, truth = sealed
    assert repr(truth) == f"Truth({len(truth)} labels, sealed)"
    with pytest.raises(TypeError, match="cannot be sent"):
        pickle.dumps(truth)
    assert not hasattr(truth, "__dict__")


def test_saved_truth_has_what_evaluation_needs(sealed, tmp_path):
    split, truth = sealed
    truth.save(tmp_path / "truth.parquet")
    table = pq.read_table(tmp_path / "truth.parquet")
    assert table["path"].to_pylist() == split.unlabeled.paths
    labels, is_old = truth.open_for_evaluation()
    assert table["label"].to_pylist() == labels.tolist()
    assert table["is_old"].to_pylist() == is_old.tolist()
    with pytest.raises(DataError, match="parquet"):
        truth.save(tmp_path / "truth.csv")


def test_without_a_class_split_a_random_half_is_old():
    images = glyph_set(4, ["hebrew"])
    split, truth = gcd_split(images)
    assert split.classes == random_half(images.classes)
    assert len(split.labeled) + len(truth) == len(images)
