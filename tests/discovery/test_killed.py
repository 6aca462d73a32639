from __future__ import annotations

from tests.discovery.tiny import TRAINED, final_bytes, records
from tests.forked_programs import Program


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_repeatedly_killed_training_is_byte_identical(tmp_path):
    done = Program("-m", "tests.discovery.killing", tmp_path).end()
    assert done.code == 0, done.err
    for name in TRAINED:
        killed, uninterrupted = tmp_path / name / "killed", tmp_path / name / "uninterrupted"
        for stage in ["run", "run/stage1"] if name == "mugcd" else ["run"]:
            assert final_bytes(killed / stage) == final_bytes(uninterrupted / stage), f"{name}, {stage}"
            assert records(killed / stage) == records(uninterrupted / stage)
            assert [record["epoch"] for record in records(killed / stage)] == [0, 1, 2]
            assert not list((killed / stage / "checkpoint").glob(".*"))  # no temporary files are left
        assert contents(killed / "model") == contents(uninterrupted / "model")
