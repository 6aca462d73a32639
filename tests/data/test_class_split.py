from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from justright.data import ClassSplit, first_half, graded, random_half, read_class_split
from justright.utils.errors import DataError, MissingDataError


def test_a_split_reads_back_as_it_was_saved_in_ssbs_schema(tmp_path):
    split = ClassSplit((3, 1), {"Similar": (0,), "Medium": (2, 5), "Dissimilar": ()})
    split.save(tmp_path / "split.json")
    assert json.loads((tmp_path / "split.json").read_text()) == {
        "known_classes": [3, 1],
        "unknown_classes": {"Hard": [0], "Medium": [2, 5], "Easy": []},
    }
    assert read_class_split(tmp_path / "split.json") == split
    assert split.new == (0, 2, 5)


def test_classes_named_by_text_are_found_among_the_names(tmp_path):
    path = tmp_path / "imagenet.json"
    path.write_text(json.dumps({"known_classes": ["n02", "n01"], "unknown_classes": {"Easy": ["n03"], "Hard": []}}))
    assert read_class_split(path, {0: "n01", 1: "n02", 2: "n03"}).old == (1, 0)
    with pytest.raises(DataError, match="names the class 'n02'"):
        read_class_split(path)


@pytest.mark.parametrize(
    ("name", "known", "sizes"), [("cub", 100, [34, 34, 32]), ("scars", 98, [7, 15, 76]), ("aircraft", 50, [13, 17, 20])]
)
def test_the_public_ssb_files_read(real_data, name, known, sizes):
    split = read_class_split(real_data / "ssb" / f"{name}_ssb_splits.json")
    assert len(split.old) == known
    assert [len(labels) for labels in split.groups.values()] == sizes
    assert sorted(split.old + split.new) == list(range(known + sum(sizes)))


@pytest.mark.parametrize("name", ["osr_splits.pkl", "renamed.json"])
def test_a_pickle_is_refused_unread_with_a_pointer_to_the_json(tmp_path, name):
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
def test_a_file_of_another_shape_is_refused(tmp_path, text):
    (tmp_path / "split.json").write_text(text)
    with pytest.raises(DataError, match="not a class split"):
        read_class_split(tmp_path / "split.json")


def test_a_class_cannot_be_both_old_and_new_and_neither_side_can_be_empty():
    with pytest.raises(DataError, match="stand twice"):
        ClassSplit((1, 2), {"Medium": (2,)})
    with pytest.raises(DataError, match="1 old and 0 new"):
        ClassSplit((1,), {"Medium": ()})


def test_a_missing_file_is_named(tmp_path):
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


def test_new_classes_are_graded_by_the_share_of_the_path_they_have_in_common():
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
    assert len(flat) == len(set(flat)), "classes of equal share were torn apart"


def test_without_differences_in_the_hierarchy_every_class_is_medium():
    assert graded(ClassSplit((0,), {"": (1, 2)}), dict.fromkeys(range(3), ("x",))).groups["Medium"] == (1, 2)
    assert graded(first_half(range(4)), dict.fromkeys(range(4), ())).groups["Medium"] == (2, 3)
