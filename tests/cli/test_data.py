from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from tests.cli.conftest import invoke
from tests.data.drawn_files import put

from justright.data.catalog import DATA_SETS
from justright.data.catalog.glyphs import classes_of


def run(*arguments: str) -> Result:
    return invoke(["data", *arguments], exit_code=None)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for name in ("birds/gull/1.jpg", "birds/gull/2.jpg", "birds/tern/1.jpg", "cats/lynx/1.jpg", "loose.jpg"):
        put(tmp_path / name, b"")
    return tmp_path


def test_list_names_every_loader() -> None:
    result = run("--list")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in DATA_SETS)


def test_list_as_json_has_licence_place_and_layout_of_every_loader() -> None:
    records = json.loads(run("--list", "--json").stdout)
    assert [record["name"] for record in records] == list(DATA_SETS)
    for record in records:
        assert set(record) == {"name", "title", "licence", "where", "layout"}
        assert all(record.values())


def test_no_command_shows_the_help() -> None:
    result = run()
    assert result.exit_code == 0
    assert "justright data --list" in result.stdout


def test_show_counts_images_classes_and_levels(photos: Path) -> None:
    record = json.loads(run("show", str(photos), "--json").stdout)
    assert record == {
        "source": str(photos),
        "images": 5,
        "classes": 3,
        "unlabeled": 1,
        "datasets": {photos.name: 5},
        "splits": {},
        "hierarchy": {"superclass": 2},
    }


def test_show_prints_a_table(photos: Path) -> None:
    result = run("show", str(photos))
    assert result.exit_code == 0
    for word in ("images", "classes", "unlabeled", "groups in superclass"):
        assert word in result.stdout
    assert "images of" not in result.stdout, "the number of images is there already"


def test_show_counts_the_splits_of_a_benchmark(tmp_path: Path) -> None:
    for name in ("small-train/0/a.jpg", "small-train/0/b.jpg", "small-validation/0/c.jpg"):
        put(tmp_path / name, b"")
    record = json.loads(run("show", f"herbarium19:{tmp_path}", "--json").stdout)
    assert record["splits"] == {"train": 2, "test": 1}
    assert record["datasets"] == {"herbarium19": 3}


def test_missing_file_shows_no_traceback(tmp_path: Path) -> None:
    result = run("show", f"cub:{tmp_path}")
    assert result.exit_code == 1
    assert "classes.txt does not exist" in result.stderr
    assert "https://www.vision.caltech.edu" in result.stderr


def test_missing_source_is_reported(tmp_path: Path) -> None:
    result = run("show", str(tmp_path / "nothing"))
    assert result.exit_code == 1
    assert "no such file or folder" in result.stderr


@pytest.mark.parametrize("option", ["--list", "--json"])
def test_option_before_the_command_is_rejected(photos: Path, option: str) -> None:
    result = run(option, "show", str(photos))
    assert result.exit_code == 2
    assert "justright data show" in result.stderr


@pytest.mark.parametrize("arguments", [("--help",), ("show", "--help")])
def test_help_has_examples(arguments: tuple[str, ...]) -> None:
    assert "Examples:" in run(*arguments).stdout


def test_glyphs_are_written_as_class_folders(tmp_path):
    out = tmp_path / "letters"
    words = ["data", "glyphs", "--out", str(out), "--per-class", "2", "--scripts", "digits", "--json"]
    done = invoke(words)
    assert json.loads(done.stdout) == {"images": 20, "classes": 10, "written": 20, "folder": str(out)}
    assert len(list(out.rglob("*.png"))) == 20


def test_unknown_script_shows_no_traceback(tmp_path):
    done = invoke(["data", "glyphs", "--out", str(tmp_path), "--scripts", "klingon"], 1)
    assert "klingon" in done.output


def split_of(tmp_path, *words):
    source = "glyphs:per_class=2,scripts=hebrew+faces+ogham"
    done = invoke(["data", "split", source, "--out", str(tmp_path), "--json", *words])
    return json.loads(done.stdout)


def test_split_names_the_rule_for_old_classes(tmp_path):
    value = split_of(tmp_path)
    assert (value["old_classes"], value["new_classes"]) == (29, 30)
    assert value["rule"] == "a random half of the classes is old"


def test_label_group_exchanges_difficulty_and_old_classes(tmp_path):
    labels = [glyph.label for glyph in classes_of("hebrew")]
    groups = {"Hard": labels[10:12], "Medium": labels[12:15], "Easy": labels[15:]}
    (tmp_path / "split.json").write_text(json.dumps({"known_classes": labels[:10], "unknown_classes": groups}))
    value = split_of(tmp_path, "--classes", str(tmp_path / "split.json"), "--label-group", "medium")
    assert (value["old_classes"], value["new_classes"]) == (3, 10)
    assert "Medium" in value["rule"]
