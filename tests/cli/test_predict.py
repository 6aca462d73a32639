from __future__ import annotations

import csv

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from justright.cli import main
from justright.data import open_images


def test_new_images_are_predicted_from_the_saved_run(run, split, tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    out, _ = run
    network = tmp_path / "tuned.safetensors"
    args = ["predict", str(out), str(split / "hebrew"), "--out", str(tmp_path / "p.csv"), "--neither", "0.1"]
    done = CliRunner().invoke(main, [*args, "--save-backbone", str(network), "--json"])
    assert done.exit_code == 0, done.output
    with (tmp_path / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 22 * 8
    kinds = [row["kind"] for row in rows]
    assert set(kinds) <= {"known", "discovered", "neither"}
    assert 0.05 < kinds.count("neither") / len(kinds) < 0.2, "about the share that was asked for"
    assert all(0 < float(row["confidence"]) <= 1 for row in rows)
    assert network.stat().st_size > 100_000


def test_a_folder_without_a_run_is_told(tmp_path):
    done = CliRunner().invoke(main, ["predict", str(tmp_path), "glyphs", "--out", str(tmp_path / "p.csv")])
    assert done.exit_code == 1
    assert "Traceback" not in done.output


def test_what_cannot_be_is_refused_before_any_image_is_read(run, split, tmp_path, monkeypatch):
    monkeypatch.setattr("justright.discovery.base.extract", lambda *_, **__: pytest.fail("work has begun"))
    monkeypatch.setattr("justright.features.backbone.load_backbone", lambda *_, **__: pytest.fail("work has begun"))
    (tmp_path / "file").write_text("in the way")
    out, _ = run
    for words, said in (
        ([str(out), "--out", str(tmp_path / "p.xlsx")], "a name that ends in .csv, .parquet"),
        ([str(out), "--out", str(tmp_path / "file" / "p.csv")], "Not a directory"),
        ([str(tmp_path), "--out", str(tmp_path / "p.csv")], "does not describe a model"),
        ([str(tmp_path / "nowhere"), "--out", str(tmp_path / "p.csv")], "does not exist"),
    ):
        done = CliRunner().invoke(main, ["predict", *words[:1], str(split / "hebrew"), *words[1:]])
        assert done.exit_code != 0
        assert said in done.output


def test_an_image_that_was_labeled_in_the_run_keeps_its_label(run, split, tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    out, _ = run
    done = CliRunner().invoke(main, ["predict", str(out), str(split / "hebrew"), "--out", str(tmp_path / "p.parquet")])
    assert done.exit_code == 0, done.output
    labeled = open_images(split / "split" / "labeled.parquet")
    given = dict(zip(labeled.content_ids(), labeled.table["class_name"].to_pylist(), strict=True))
    rows = pq.read_table(tmp_path / "p.parquet").to_pylist()
    found = {row["id"]: row for row in rows if row["source"] == "given"}
    assert {name: row["category"] for name, row in found.items()} == given
    assert {(row["kind"], row["confidence"]) for row in found.values()} == {("known", 1.0)}
