"""One process at a time may write to a folder; the lock of a killed process is released."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

import pytest

from justright.runs.run_folder import LOCK, OwnedError, owned

HOLD = """
import sys, time
from pathlib import Path
from justright.runs.run_folder import owned
with owned(Path(sys.argv[1])):
    print("mine", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of tmp_path / "run"."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True, env=os.environ
    )
    assert process.stdout.readline() == "mine\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def own(folder):
    with owned(folder):
        pass


def test_second_owner_raises_with_the_first_process(tmp_path, holder):
    with pytest.raises(OwnedError, match=rf"run is being written by process {holder.pid} since \d{{4}}-\d\d-\d\d \d"):
        own(tmp_path / "run")


def test_lock_of_a_killed_process_is_released(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert list((tmp_path / "run").glob(f"{LOCK}*"))
    own(tmp_path / "run")
    assert list((tmp_path / "run").iterdir()) == []


def test_one_process_cannot_lock_twice(tmp_path):
    with owned(tmp_path), pytest.raises(OwnedError, match=f"process {os.getpid()} since"):
        own(tmp_path)
    own(tmp_path)


def test_unused_new_folder_is_removed_unless_it_has_files(tmp_path):
    own(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with owned(tmp_path / "new"):
        (tmp_path / "new" / "result").touch()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["result"]


def test_owner_on_another_machine_is_named(tmp_path, monkeypatch):
    with owned(tmp_path):
        here = socket.gethostname()
        monkeypatch.setattr(socket, "gethostname", lambda: "far")
        with pytest.raises(OwnedError, match=rf"is being written by process {os.getpid()} on {here} "):
            own(tmp_path)
