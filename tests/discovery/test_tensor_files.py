from __future__ import annotations

import signal

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from tests.forked_programs import Program

from justright.discovery import tensor_files
from justright.discovery.tensor_files import write_tensors
from justright.files import leftovers, remove_leftovers

TENSORS = {"a": torch.arange(6).reshape(2, 3), "b": torch.tensor([0.5])}


def test_what_is_written_is_read(tmp_path):
    write_tensors(tmp_path / "new" / "some.safetensors", TENSORS, {"format": "1"})
    found = load_file(tmp_path / "new" / "some.safetensors")
    assert found.keys() == TENSORS.keys()
    assert all(torch.equal(found[name], TENSORS[name]) for name in TENSORS)
    with safe_open(tmp_path / "new" / "some.safetensors", "pt") as file:
        assert file.metadata() == {"format": "1"}


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    write_tensors(tmp_path / "some.safetensors", TENSORS)
    before = (tmp_path / "some.safetensors").read_bytes()
    monkeypatch.setattr(tensor_files, "save", lambda tensors, metadata: "no bytes")
    with pytest.raises(TypeError):
        write_tensors(tmp_path / "some.safetensors", TENSORS)
    assert [path.name for path in tmp_path.iterdir()] == ["some.safetensors"]
    assert (tmp_path / "some.safetensors").read_bytes() == before


KILLED = """
import os, signal, sys
from pathlib import Path
import torch
from justright.discovery.tensor_files import write_tensors
os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)  # when all is written and nothing renamed yet
write_tensors(Path(sys.argv[1]) / "some.safetensors", {"a": torch.ones(3)})
"""


def test_what_a_kill_leaves_is_known_as_left_over(tmp_path):
    assert Program("-c", KILLED, tmp_path).end().code == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == leftovers(tmp_path)
    assert leftovers(tmp_path)
    remove_leftovers(tmp_path)
    assert not list(tmp_path.iterdir())
