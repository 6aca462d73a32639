from __future__ import annotations

import csv

from click.testing import CliRunner

from justright.cli import main


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
