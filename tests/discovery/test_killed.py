from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.discovery.tiny import TRAINED, final_bytes, records

ROOT = Path(__file__).parents[2]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_training_killed_again_and_again_ends_as_one_that_was_left_alone(tmp_path):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.discovery.killing", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    for name in TRAINED:
        killed, undisturbed = tmp_path / name / "killed", tmp_path / name / "undisturbed"
        for stage in ["run", "run/stage1"] if name == "mugcd" else ["run"]:
            assert final_bytes(killed / stage) == final_bytes(undisturbed / stage), f"{name}, {stage}"
            assert records(killed / stage) == records(undisturbed / stage)
            assert [record["epoch"] for record in records(killed / stage)] == [0, 1, 2]
            assert not list((killed / stage / "checkpoint").glob(".*"))  # nothing half-written stays
        assert contents(killed / "model") == contents(undisturbed / "model")
