from __future__ import annotations

import logging
import signal
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file
from tests.forked_programs import Program
from tests.leases import left_by_a_dead_process

from justright.discovery import checkpoints
from justright.discovery.checkpoints import N_KEPT, Checkpoint, Checkpoints, check_same_settings, write_tensors
from justright.utils.errors import DataError
from justright.utils.files import leftovers, remove_leftovers, replacing

STATE = {"made_with": {"seed": 0}, "progress": {"epoch": 1, "sums": {"loss": 0.1, "apart": 1 / 3}}}
SOME = {"a": torch.arange(6).reshape(2, 3), "b": torch.tensor([0.5])}


def checkpoint(value=1.0):
    tensors = {"network/a": torch.full((2, 3), value), "momentum/a": torch.arange(3), "scalar": torch.tensor(value)}
    return Checkpoint(tensors, STATE)


def test_checkpoint_round_trip_is_exact(tmp_path):
    saved = checkpoint(0.1)
    Checkpoints(tmp_path).save(3, saved)
    found = Checkpoints(tmp_path).load()
    assert found.state == saved.state
    assert list(found.state["progress"]["sums"]) == ["loss", "apart"]
    assert found.tensors.keys() == saved.tensors.keys()
    assert all(torch.equal(found.tensors[name], tensor) for name, tensor in saved.tensors.items())


def test_non_contiguous_tensors_are_saved(tmp_path):
    channels_last = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last)
    Checkpoints(tmp_path).save(0, Checkpoint({"a": channels_last, "b": channels_last.mT.bfloat16()}, {}))
    found = Checkpoints(tmp_path).load().tensors
    assert torch.equal(found["a"], channels_last)
    assert torch.equal(found["b"], channels_last.mT.bfloat16())


def test_newest_two_checkpoints_are_kept(tmp_path):
    kept = Checkpoints(tmp_path)
    for number in (1, 2, 30, 1000):
        kept.save(number, checkpoint(number))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "step-000000030.safetensors",
        "step-000001000.safetensors",
    ]
    assert N_KEPT == 2
    assert kept.load().tensors["scalar"] == 1000


def test_finish_keeps_the_newest_checkpoint(tmp_path):
    kept = Checkpoints(tmp_path)
    kept.finish()
    for number in (3, 5):
        kept.save(number, checkpoint(float(number)))
    (tmp_path / "step-000000001.damaged").touch()
    for _ in range(2):
        kept.finish()
        assert [path.name for path in tmp_path.iterdir()] == ["step-000000005.safetensors"]
    found = kept.load()
    assert found.tensors["scalar"] == 5.0
    assert found.state == STATE


def test_load_returns_none_without_checkpoints(tmp_path):
    assert Checkpoints(tmp_path / "nowhere").load() is None


def test_half_written_files_are_removed(tmp_path):
    left_by_a_dead_process(tmp_path / "step-000000009.safetensors").write_bytes(b"half")
    kept = Checkpoints(tmp_path)
    kept.save(3, checkpoint())
    assert kept.load() is not None
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000003.safetensors"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    return Checkpoints(folder).save(7, checkpoint()).read_bytes()


@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@settings(max_examples=60, deadline=None)
def test_every_flipped_bit_is_detected(written, tmp_path_factory, place, bit):
    folder = tmp_path_factory.mktemp("flipped")
    content = bytearray(written)
    content[int(place * len(content))] ^= 1 << bit
    (folder / "step-000000007.safetensors").write_bytes(content)
    good = Checkpoint({"scalar": torch.tensor(6.0)}, {})
    Checkpoints(folder / "other").save(6, good).rename(folder / "step-000000006.safetensors")
    assert Checkpoints(folder).load().tensors["scalar"] == 6


@pytest.mark.parametrize("n_bytes", [0, 1, 8, 100, -1])
def test_truncated_checkpoint_is_warned_about_and_renamed(written, n_bytes, tmp_path, caplog):
    kept = Checkpoints(tmp_path)
    kept.save(6, checkpoint(6.0))
    (tmp_path / "step-000000007.safetensors").write_bytes(written[:n_bytes])
    with caplog.at_level(logging.WARNING):
        assert kept.load().tensors["scalar"] == 6
    assert "step-000000007.safetensors is damaged" in caplog.text
    assert (tmp_path / "step-000000007.damaged").exists()
    kept.save(7, checkpoint(7.0))
    assert kept.load().tensors["scalar"] == 7


def test_all_checkpoints_damaged_raises_every_time(written, tmp_path):
    for number in (6, 7):
        (tmp_path / f"step-00000000{number}.safetensors").write_bytes(written[:50])
    for _ in range(2):
        with pytest.raises(DataError, match="every checkpoint in"):
            Checkpoints(tmp_path).load()


def test_load_rejects_other_formats(tmp_path):
    from safetensors.torch import save_file

    save_file({"a": torch.ones(2)}, tmp_path / "step-000000001.safetensors")
    with pytest.raises(DataError, match="every checkpoint in"):
        Checkpoints(tmp_path).load()


def test_changed_settings_are_listed():
    before = {"seed": 0, "config": {"rate": 0.1, "same": 1}, "gone": True}
    now = {"seed": 0, "config": {"rate": 0.2, "same": 1}, "new": None, "more": "x"}
    with pytest.raises(DataError) as raised:
        check_same_settings(before, now, Path("runs/a"))
    message = str(raised.value)
    assert "runs/a was trained with other settings" in message
    assert "config.rate: 0.1 before, 0.2 now" in message
    assert "gone: True before, None now" in message
    assert "more: None before, 'x' now" in message
    assert "seed" not in message
    assert "same:" not in message
    check_same_settings(before, before, Path())


def test_only_leftovers_of_dead_processes_are_removed(tmp_path):
    path = tmp_path / "step-000000001.safetensors"
    left = left_by_a_dead_process(path)
    left.write_bytes(b"half")
    with replacing(path) as writing:
        writing.write_bytes(b"half")
        assert Checkpoints(tmp_path).load() is None
        assert writing.exists(), "two processes of one training load in turn, and the first may save already"
    assert not left.exists()


def test_tensors_round_trip(tmp_path):
    write_tensors(tmp_path / "new" / "some.safetensors", SOME, {"format": "1"})
    found = load_file(tmp_path / "new" / "some.safetensors")
    assert found.keys() == SOME.keys()
    assert all(torch.equal(found[name], SOME[name]) for name in SOME)
    with safe_open(tmp_path / "new" / "some.safetensors", "pt") as file:
        assert file.metadata() == {"format": "1"}


def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    write_tensors(tmp_path / "some.safetensors", SOME)
    before = (tmp_path / "some.safetensors").read_bytes()
    monkeypatch.setattr(checkpoints, "save", lambda tensors, metadata: "no bytes")
    with pytest.raises(TypeError):
        write_tensors(tmp_path / "some.safetensors", SOME)
    assert [path.name for path in tmp_path.iterdir()] == ["some.safetensors"]
    assert (tmp_path / "some.safetensors").read_bytes() == before


KILLED = """
import os, signal, sys
from pathlib import Path
import torch
from justright.discovery.checkpoints import write_tensors
os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)  # when everything is written and nothing renamed yet
write_tensors(Path(sys.argv[1]) / "some.safetensors", {"a": torch.ones(3)})
"""


def test_kill_leaves_a_recognizable_temporary_file(tmp_path):
    assert Program("-c", KILLED, tmp_path).end().code == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == leftovers(tmp_path)
    assert leftovers(tmp_path)
    remove_leftovers(tmp_path)
    assert not list(tmp_path.iterdir())
