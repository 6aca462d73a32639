from __future__ import annotations

import pytest
from tests.made_runs import make_run

from justright.errors import DataError, MissingDataError
from justright.runs.run_folder import RunFolder


def test_every_file_of_a_run_can_be_read(tmp_path):
    run = make_run(tmp_path / "run")
    assert len(run.predictions) == len(run.target) == len(run.tuned)
    assert len(run.pool) == len(run.selection.sample_weight)
    assert run.frozen is not None
    assert len(run.metrics) == 12
    assert run.count["estimates"]["labeled-search"]["n_categories"] == 24
    assert run.scores.all > 0.8
    assert run.truth_file is not None


def test_a_line_cut_off_by_a_kill_is_left_out(tmp_path):
    run = make_run(tmp_path / "run")
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 12, "lo')
    assert len(RunFolder.open(run.path).metrics) == 12


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(MissingDataError, match="does not hold a run"):
        RunFolder.open(tmp_path)


def test_predictions_of_other_images_are_refused(tmp_path):
    run = make_run(tmp_path / "run")
    run.target.take([0, 1]).save(run.path / "target.parquet")
    with pytest.raises(DataError, match="predicts"):
        _ = RunFolder.open(run.path).predictions
