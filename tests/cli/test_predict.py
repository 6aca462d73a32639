from __future__ import annotations

import csv
import json
import shutil

import pyarrow.parquet as pq
import pytest
from PIL import Image
from tests.cli.conftest import discover_words, invoke

from justright.data import open_images


def test_new_images_are_predicted_from_the_saved_run(run, split, tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    out, _ = run
    network = tmp_path / "tuned.safetensors"
    args = ["predict", str(out), str(split / "hebrew"), "--out", str(tmp_path / "p.csv"), "--neither", "0.1"]
    invoke([*args, "--save-backbone", str(network), "--json"])
    with (tmp_path / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 22 * 8
    kinds = [row["kind"] for row in rows]
    assert set(kinds) <= {"known", "discovered", "neither"}
    assert 0.05 < kinds.count("neither") / len(kinds) < 0.2, "about the share of --neither"
    assert all(0 < float(row["confidence"]) <= 1 for row in rows)
    assert network.stat().st_size > 100_000


def test_predict_prints_expected_number_of_right_images(run, split, tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    args = ["predict", str(run[0]), str(split / "hebrew"), "--out", str(tmp_path / "p.csv"), "--neither", "0.3"]
    expected = json.loads(invoke([*args, "--json"]).stdout)["expected_right"]
    with (tmp_path / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    sure = [float(row["confidence"]) for row in rows if row["kind"] != "neither" and row["source"] == "predicted"]
    assert 0 < len(sure) < len(rows)
    assert (expected["n"], expected["expected"]) == (len(sure), pytest.approx(sum(sure), abs=1))
    last = invoke(args).stdout.strip().splitlines()[-1]
    message = (
        f"We expect {expected['low']} to {expected['high']} of {len(sure)} other images to be right (90 % interval)."
    )
    assert last.endswith(message)


def test_predict_says_that_a_review_is_not_used(run, split, tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    out = shutil.copytree(run[0], tmp_path / "run")
    words = ["predict", str(out), str(split / "hebrew"), "--out", str(tmp_path / "p.csv")]
    assert "review" not in invoke(words).stderr
    (out / "review").mkdir()
    (out / "review" / "log.jsonl").touch()
    assert "Names and corrections of the review are not used" in invoke(words).stderr


def test_skipped_files_are_counted(run, split, tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    photos = tmp_path / "photos"
    shutil.copytree(split / "hebrew", photos)
    (photos / "notes.txt").write_text("to sort")
    (photos / "broken.png").write_bytes(b"")
    words = ["predict", str(run[0]), str(photos), "--out", str(tmp_path / "p.csv")]
    done = invoke(words)
    text = " ".join(done.output.split())
    assert "1 file was skipped: 1 not recognized by name (notes.txt)" in text
    assert "1 unreadable left out (broken.png)" in text
    result = json.loads(invoke([*words, "--json"]).stdout)
    assert (result["images"], result["unreadable"], result["not recognised by name"]) == (22 * 8, 1, 1)


def test_folder_without_a_run_raises(tmp_path):
    done = invoke(["predict", tmp_path, "glyphs", "--out", tmp_path / "p.csv"], 1)
    assert "there is no model.json" in done.output


def test_invalid_options_raise_before_images_are_read(run, split, tmp_path, monkeypatch):
    monkeypatch.setattr("justright.discovery.base.extract", lambda *_, **__: pytest.fail("work has begun"))
    monkeypatch.setattr("justright.features.backbone.load_backbone", lambda *_, **__: pytest.fail("work has begun"))
    (tmp_path / "file").write_text("in the way")
    out, _ = run
    for words, message in (
        ([str(out), "--out", str(tmp_path / "p.xlsx")], "a name that ends in .csv, .parquet"),
        ([str(out), "--out", str(tmp_path / "file" / "p.csv")], "Not a directory"),
        ([str(tmp_path), "--out", str(tmp_path / "p.csv")], "there is no model.json"),
        ([str(tmp_path / "nowhere"), "--out", str(tmp_path / "p.csv")], "does not exist"),
    ):
        done = invoke(["predict", *words[:1], split / "hebrew", *words[1:]], exit_code=None)
        assert done.exit_code != 0
        assert message in done.output


def test_labeled_image_keeps_its_label(run, split, tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    out, _ = run
    invoke(["predict", str(out), str(split / "hebrew"), "--out", str(tmp_path / "p.parquet")])
    labeled = open_images(split / "split" / "labeled.parquet")
    given = dict(zip(labeled.content_ids(), labeled.table["class_name"].to_pylist(), strict=True))
    rows = pq.read_table(tmp_path / "p.parquet").to_pylist()
    result = {row["id"]: row for row in rows if row["source"] == "given"}
    assert {name: row["category"] for name, row in result.items()} == given
    assert {(row["kind"], row["confidence"]) for row in result.values()} == {("known", 1.0)}


def of_images(file):
    table = pq.read_table(file)
    columns = [table[name].to_pylist() for name in ("path", "category", "confidence")]
    return {path: answer for path, *answer in zip(*columns, strict=True)}


@pytest.mark.parametrize("how", [("cms",), ("simgcd", "--seeds", "2")], ids=["a tree of clusters", "a vote"])
def test_predict_keeps_run_results_and_classifies_new_images(how, split, tmp_path, monkeypatch):
    """The model alone would classify some of both differently. Moved files are recognized by their content."""
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    run, moved = tmp_path / "run", tmp_path / "moved"
    shutil.copytree(split / "hebrew", moved)
    (moved / "more").mkdir()
    Image.new("RGB", (32, 32), "white").save(moved / "more" / "new.png")
    invoke([*discover_words(split, run), "--method", *how])
    invoke(["predict", run, moved, "--out", tmp_path / "p.parquet"])
    before, result = of_images(run / "predictions.parquet"), of_images(tmp_path / "p.parquet")
    assert {path: result[path] for path in before} == before
    assert len(result) == 22 * 8 + 1
    for name in ("model.json", "model.safetensors"):
        (tmp_path / "copied").mkdir(exist_ok=True)
        shutil.copyfile(run / name, tmp_path / "copied" / name)
    invoke(["predict", tmp_path / "copied", moved, "--out", tmp_path / "alone.parquet"])
    alone = of_images(tmp_path / "alone.parquet")
    assert {path: alone[path] for path in before} != before
    assert alone["more/new.png"] == result["more/new.png"]
