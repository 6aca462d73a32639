from __future__ import annotations

import os
import subprocess
import sys

import pytest

from justright.files import remove_leftovers, replacing, write_text


def test_after_an_error_the_old_file_is_there_and_nothing_else(tmp_path):
    write_text(tmp_path / "a.txt", "old")

    def fail():
        with replacing(tmp_path / "a.txt") as temporary:
            temporary.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (tmp_path / "a.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.skipif(os.name != "posix", reason="only there one can ask whether a process is still running")
def test_what_a_killed_process_left_is_removed_and_what_a_running_one_writes_is_not(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for name in (f".model.safetensors.{ended.pid}.tmp", f".model.json.{os.getpid()}.tmp", ".mine.tmp", "a.1.tmp"):
        (tmp_path / name).write_text("half")
    remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {f".model.json.{os.getpid()}.tmp", ".mine.tmp", "a.1.tmp"}
