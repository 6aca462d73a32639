"""Skipped files are listed with reasons, and doubtful labels are warned about."""

from __future__ import annotations

import csv
import json
import os
import zipfile
from collections import Counter

import pytest
from tests.conftest import picture
from tests.features.tiny_extraction import run

from justright.data import ImageSet, folder, merge_pool, open_images
from justright.features.backbone import load_backbone
from justright.runs.problem import OWN, make_problem
from justright.runs.run import Run
from justright.runs.run_folder import RunFolder
from justright.runs.source_checks import (
    LeftOut,
    copies_left_out,
    label_warnings,
    left_out_by_name,
    read_left_out,
    summary,
    unreadable_files,
    write_left_out,
)
from justright.runs.spec import RunSpec
from justright.utils.errors import DataError


@pytest.fixture
def spoiled(make_tree):
    """Photos, two of which cannot be read, a text file and a photo in HEIF."""
    root = make_tree({"": 24}, "photos", 50)
    (root / "30.png").write_bytes(b"")
    (root / "31 ü.png").write_bytes(b"no picture")
    (root / "notes, old.txt").write_text("hello")
    (root / ".hidden").write_text("")
    (root / "phone.heic").write_bytes(b"")
    return root


def test_files_are_skipped_by_name_in_folders_and_zips(spoiled, make_tree, tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "reads_heif", lambda: False)
    with zipfile.ZipFile(tmp_path / "pool.zip", "w") as made:
        made.write(spoiled / "0.png", "oak/0.png")
        for name in ("oak/readme.md", "labels.csv", "__MACOSX/oak/._0.png", "oak/.DS_Store"):
            made.writestr(name, "hello")
    result = left_out_by_name([str(make_tree({"cat": 1}, "own"))], [str(tmp_path / "pool.zip")], [str(spoiled)])
    assert [(os.path.relpath(each.path, tmp_path), each.side, each.reason) for each in result] == [
        ("pool.zip/oak/readme.md", "pool", "not_recognised"),
        ("photos/notes, old.txt", "target", "not_recognised"),
        ("photos/phone.heic", "target", "no_heif"),
    ]
    assert "justright[heif]" in result[2].detail
    assert left_out_by_name([], [], ["glyphs"]) == []
    monkeypatch.chdir(spoiled)
    assert left_out_by_name([], [], [""]) == [], "features in memory have no folder, hence not the current one"
    monkeypatch.setattr(folder, "reads_heif", lambda: True)
    assert "no_heif" not in {each.reason for each in left_out_by_name([], [], [str(spoiled)])}


def test_unreadable_images_are_listed(make_tree, tmp_path):
    own, others = (open_images(make_tree({"a": 3}, name, first)) for name, first in (("own", 0), ("others", 9)))
    (tmp_path / "own" / "a" / "1.png").write_bytes(b"")
    (tmp_path / "others" / "a" / "1.png").write_bytes(b"no picture")
    problem = make_problem([others], own, open_images(make_tree({"": 2}, "photos", 30)))
    images = problem.pool.images
    result = unreadable_files(images, run(images, tmp_path / "f", max_bad=0.5), is_target=False)
    assert [(each.path, each.side, each.reason) for each in result] == [
        (str(tmp_path / "own" / "a" / "1.png"), "labeled", "empty"),
        (str(tmp_path / "others" / "a" / "1.png"), "pool", "not_an_image"),
    ]


def test_copies_are_images_of_the_first_set_only(make_tree):
    images = open_images(make_tree({"a": 3}))
    both = ImageSet.concat([images, images])
    assert copies_left_out(both, both) == []
    assert [each.path.rpartition("/")[2] for each in copies_left_out(both, both.take([0, 2, 3, 4, 5]))] == ["1.png"]


def test_summary_has_counts_reasons_and_names():
    reasons = ["empty", "truncated", "unreadable", "unreadable", "no_heif", "not_recognised", "copy"]
    files = [LeftOut(f"/photos/{n}\x1b.png", "target", reason, "") for n, reason in enumerate(reasons)]
    assert summary(files) == (
        "7 files were skipped: 4 unreadable (0\\x1b.png, 1\\x1b.png, 2\\x1b.png, ...); 1 in HEIF, which needs pip "
        "install 'justright[heif]' (4\\x1b.png); 1 not recognized by name (5\\x1b.png); 1 labeled and also in the "
        "target (6\\x1b.png)"
    )
    assert summary([]) == ""


def test_list_is_read_as_written(tmp_path):
    odd = LeftOut('/photos/a, "b"\nc.png', "target", "empty", "the file is empty")
    write_left_out(tmp_path, [odd, LeftOut("/photos/\udcff.txt", "pool", "not_recognised", "")])
    assert read_left_out(tmp_path / "left_out.csv") == [
        odd,
        LeftOut("/photos/\\udcff.txt", "pool", "not_recognised", ""),
    ]
    write_left_out(tmp_path, [])
    assert read_left_out(tmp_path / "left_out.csv") == []
    (tmp_path / "left_out.csv").write_text("other\n1\n")
    with pytest.raises(DataError, match=r"left_out\.csv cannot be read"):
        read_left_out(tmp_path / "left_out.csv")


def test_run_saves_the_list_and_warns(spoiled, make_tree, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(folder, "reads_heif", lambda: False)
    labeled = open_images(make_tree({"a": 4, "b": 4}, "own"))
    picture(0).save(spoiled / "copy.png")  # as a/0.png
    for number in range(40):  # so that the share of bad photos is allowed
        picture(200 + number).save(spoiled / f"more {number}.png")
    problem = make_problem([], labeled, open_images(spoiled))
    before = problem.pool.images
    problem, _ = problem.without_copies()
    left_out = [*left_out_by_name([], [], [str(spoiled)]), *copies_left_out(before, problem.pool.images)]
    spec = RunSpec(method="kmeans", selector="none", scale="small", backbone="glyph_vit", n_target=4, settings={})
    Run(problem, spec, tmp_path / "run", load_backbone("glyph_vit"), left_out=left_out).all()
    result = RunFolder.open(tmp_path / "run")
    expected = {"not_recognised": 1, "no_heif": 1, "copy": 1, "empty": 1, "not_an_image": 1}
    assert result.about["left_out"] == Counter(each.reason for each in result.left_out) == expected
    assert any("5 files were skipped: 2 unreadable (30.png, 31 ü.png)" in note for note in result.about["notes"])
    assert "2 files were skipped" in caplog.text
    with (tmp_path / "run" / "left_out.csv").open(encoding="utf-8") as file:
        assert next(csv.DictReader(file)) == {
            "path": str(spoiled / "notes, old.txt"),
            "side": "target",
            "reason": "not_recognised",
            "detail": "its name does not end like an image's",
        }
    assert "left_out.csv" in json.loads((tmp_path / "run" / "run.json").read_text())["files"]


def test_clean_labels_give_no_warning(make_tree):
    sets = [open_images(make_tree({"cat": 2, "dog": 2}, "own")).named(OWN)]
    sets.append(open_images(make_tree({"Cat": 2}, "pets", 9)))  # names of different data sets are not compared
    assert label_warnings(merge_pool(sets)) == []


def test_similar_names_are_shown_escaped(make_tree):
    pool = merge_pool([open_images(make_tree({"cat": 1, "Cat": 1, "dog": 1, "dog\u200b": 1}, "own")).named(OWN)])
    (message,) = label_warnings(pool)
    assert "'Cat' and 'cat'; 'dog' and 'dog\\u200b'" in message
    assert "by case or by invisible characters" in message


def test_names_of_the_target_are_compared(make_tree):
    pool = merge_pool([open_images(make_tree({"cat": 1}, "own")).named(OWN)])
    assert label_warnings(pool, ["dog", "cat"]) == []
    assert "'CAT' and 'cat'" in label_warnings(pool, ["dog", "CAT"])[0]


def test_image_with_two_classes_is_shown_with_both_paths(make_tree):
    root = make_tree({"cat": 2, "dog": 2}, "own")
    picture(0).save(root / "dog" / "again.png")
    (message,) = label_warnings(merge_pool([open_images(root).named(OWN)]))
    assert message.startswith("1 labeled image has several classes, such as ")
    assert f"{root}/cat/0.png ('cat') and {root}/dog/again.png ('dog')" in message


def test_names_are_compared_between_data_sets(make_tree):
    own = open_images(make_tree({"cat": 2}, "own")).named(OWN)
    assert label_warnings(merge_pool([own, open_images(make_tree({"001.Cat": 2}, "pets"))])) == []
    (message,) = label_warnings(merge_pool([own, open_images(make_tree({"lynx": 2}, "zoo"))]))
    assert message.startswith("2 labeled images have several classes")
    assert "'zoo/lynx'" in message


def test_unreadable_images_are_not_copies(make_tree):
    root = make_tree({"cat": 2, "dog": 2}, "own")
    images = open_images(root).named(OWN)
    for name in ("cat", "dog"):
        (root / name / "1.png").unlink()
    assert label_warnings(merge_pool([images])) == []
