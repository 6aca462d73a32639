from __future__ import annotations

from dataclasses import replace

import pytest
from tests.made_runs import make_run

from justright.runs.run_folder import RunFolder
from justright.utils.errors import DataError, MissingDataError
from justright.utils.hashing import hash_file


def test_every_file_of_a_run_can_be_read(tmp_path):
    run = make_run(tmp_path / "run")
    assert len(run.predictions) == len(run.target) == len(run.tuned)
    assert len(run.pool) == len(run.selection.sample_weight)
    assert run.frozen is not None
    assert len(run.metrics) == 12
    assert run.count["estimates"]["labeled-search"]["n_categories"] == 24
    assert run.scores.all > 0.8
    assert run.truth_file is not None


def test_incomplete_last_line_is_skipped(tmp_path):
    run = make_run(tmp_path / "run")
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 12, "lo')
    assert len(RunFolder.open(run.path).metrics) == 12


def test_folder_without_a_run_raises(tmp_path):
    with pytest.raises(MissingDataError, match="does not hold a run"):
        RunFolder.open(tmp_path)


def test_missing_results_of_an_unfinished_run_raise(tmp_path):
    run = make_run(tmp_path / "run")
    for name in ("predictions.parquet", "tuned.npy"):
        (run.path / name).unlink()
        with pytest.raises(MissingDataError, match=f"no {name}: the run is not finished"):
            getattr(RunFolder.open(run.path), name.partition(".")[0])


def finished_run(path):
    run = make_run(path)
    run.save_about(run.about | {"is_finished": True})
    return RunFolder.open(path)


def test_finished_run_lists_every_file_with_its_hash(tmp_path):
    run = finished_run(tmp_path / "run")
    assert {"predictions.parquet", "weights.classes.parquet", "tuned.npy"} < set(run.about["files"])
    assert run.about["files"]["scores.json"] == hash_file(run.path / "scores.json")
    replace(run.scores, all=0.99).save(run.path / "scores.json")
    with pytest.raises(DataError, match=r"scores\.json is missing or not what the run finished with"):
        _ = RunFolder.open(run.path).scores
    (run.path / "weights.parquet").unlink()
    with pytest.raises(DataError, match=r"weights\.parquet is missing"):
        _ = RunFolder.open(run.path).selection


def test_damaged_files_are_recomputed_or_raise(tmp_path, caplog):
    run = finished_run(tmp_path / "run")
    (run.path / "count.json").write_text("{}")
    RunFolder(run.path).begin_again()
    assert "count.json is missing or damaged; it is recomputed" in caplog.text
    assert not (run.path / "count.json").exists()
    again = RunFolder.open(run.path)
    assert not again.about["is_finished"]
    assert again.count is None
    run.save_about(again.about | {"is_finished": True})
    (run.path / "truth.parquet").write_bytes(b"")
    with pytest.raises(DataError, match=r"truth\.parquet .* not what the run finished with"):
        RunFolder(run.path).begin_again()


@pytest.mark.parametrize("text", ["[]", "3", "{", '{"format": "justright run 1"}'])
def test_damaged_run_json_raises(tmp_path, text):
    run = make_run(tmp_path / "run")
    (run.path / "run.json").write_text(text)
    with pytest.raises(DataError, match=r"run\.json (cannot be read|holds a)"):
        RunFolder.open(run.path)
