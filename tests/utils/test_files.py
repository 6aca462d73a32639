from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.leases import left_by_a_dead_process

import justright
from justright.utils import files
from justright.utils.files import (
    ABANDONED_SECONDS,
    bytes_of,
    explain_disk_full,
    home,
    leftovers,
    parsed_json,
    remove_leftovers,
    replacing,
    size_text,
    validator_of,
    write_text,
)


def test_error_keeps_the_old_file_and_leaves_no_other(tmp_path):
    write_text(tmp_path / "a.txt", "old")

    def fail():
        with replacing(tmp_path / "a.txt") as temporary:
            temporary.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (tmp_path / "a.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_leftovers_of_killed_processes_are_removed(tmp_path):
    path, mine = tmp_path / "model.json", tmp_path / ".mine.tmp"
    for half in (mine, left_by_a_dead_process(path)):
        half.write_text("half")
    with replacing(path) as temporary:
        os.utime(temporary, (0, 0))
        remove_leftovers(tmp_path)
        assert set(tmp_path.iterdir()) == {temporary, mine}


def test_leftovers_without_locks_are_removed_after_a_day(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "HAS_LOCKS", False)
    half = left_by_a_dead_process(tmp_path / "model.json")
    half.write_text("half")
    assert leftovers(tmp_path) == []
    then = half.stat().st_mtime - ABANDONED_SECONDS - 60
    os.utime(half, (then, then))
    assert leftovers(tmp_path) == [half]


WRITE = """
import sys
from pathlib import Path
from justright.utils import files
with files.replacing(Path(sys.argv[1])) as temporary, temporary.open("w") as file:
    for _ in range(2):
        file.write(sys.argv[2])
        file.flush()
        print(temporary.name, flush=True)
        sys.stdin.readline()
"""


def test_two_processes_never_mix_a_file(tmp_path):
    """Both write the same path, in turn."""
    path = tmp_path / "a"
    words = [sys.executable, "-c", WRITE, path]
    writers = [
        subprocess.Popen([*words, host], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for host in ("one", "two")
    ]
    for _ in range(2):
        names = [writer.stdout.readline() for writer in writers]
        assert len(set(names)) == 2
        assert leftovers(tmp_path) == []
        for writer in writers:
            writer.stdin.write("\n")
            writer.stdin.flush()
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    assert path.read_text() in ("oneone", "twotwo")
    assert list(tmp_path.iterdir()) == [path]


def test_folder_removed_meanwhile_is_created_again(tmp_path, monkeypatch):
    opened, lost = Path.open, []

    def remove_and_open(path, *how, **more):
        if not lost:
            lost.append(path.parent.rmdir())
        return opened(path, *how, **more)

    monkeypatch.setattr(Path, "open", remove_and_open)
    write_text(tmp_path / "new" / "a", "text")
    assert (tmp_path / "new" / "a").read_text() == "text"


def test_file_is_flushed_before_it_replaces_the_old_one(tmp_path, monkeypatch):
    """Otherwise the file might be empty after a power failure."""
    done = []
    monkeypatch.setattr(os, "fsync", lambda number: done.append(os.readlink(f"/proc/self/fd/{number}")))
    with replacing(tmp_path / "a") as temporary:
        temporary.write_text("new")
        monkeypatch.setattr(Path, "replace", lambda old, new: done.append("replaced"))
    assert done == [str(temporary), "replaced"]


def test_file_is_flushed_through_a_writable_handle(tmp_path, monkeypatch):
    """Windows refuses to flush a file that is open for reading only."""
    monkeypatch.setattr(os, "fsync", lambda number: os.write(number, b""))  # raises for such a file
    write_text(tmp_path / "a", "text")
    assert (tmp_path / "a").read_text() == "text"


def test_long_names_have_short_temporary_ones(tmp_path):
    write_text(tmp_path / ("ä" * 120), "text")
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    "raised",
    [
        OSError(errno.EFBIG, "Error writing bytes to file. Detail: [errno 27] File too large"),
        ValueError(f"Error while serializing: I/O error: File too large (os error {errno.EFBIG})"),
    ],
    ids=["pyarrow", "safetensors"],
)
def test_full_disk_error_names_the_file(tmp_path, raised):
    with pytest.raises(OSError, match="File too large") as caught, replacing(tmp_path / "a"):
        raise raised
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(tmp_path / "a"))
    assert caught.value.strerror == "File too large"


def test_short_array_write_is_reported_as_full_disk(tmp_path):
    with pytest.raises(OSError, match="full") as caught, explain_disk_full(tmp_path / "a"):
        raise OSError("800 requested and 12 written")
    assert caught.value.errno == errno.ENOSPC
    for other in (OSError("no image"), ValueError("no number"), FileNotFoundError(errno.ENOENT, "gone", "b")):
        with pytest.raises(type(other)) as same, explain_disk_full(tmp_path / "a"):
            raise other
        assert same.value is other
    assert other.filename == "b"


def test_leftovers_in_subfolders_are_counted(tmp_path):
    half = left_by_a_dead_process(tmp_path / "banks" / "one" / "rows.npy")
    half.parent.mkdir(parents=True)
    half.write_bytes(bytes(1500))
    (tmp_path / "whole").write_bytes(bytes(500))
    if os.name == "posix":
        assert leftovers(tmp_path) == [half]
    assert bytes_of(tmp_path) == bytes_of(half, tmp_path / "whole", tmp_path / "nowhere") == 2000
    assert [size_text(n) for n in (0, 999, 1500, 2_340_000_000)] == ["0 B", "999 B", "1.5 KB", "2.34 GB"]


def test_unflushed_write_is_atomic_too(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda file: pytest.fail("flushed"))
    with replacing(tmp_path / "a", is_flushed=False) as temporary:
        temporary.write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("text", [b"[" * 100_000, '{"a":' * 100_000, "", b"\xff", "[1"])
def test_invalid_or_deep_json_is_a_value_error(text):
    with pytest.raises(ValueError):  # noqa: PT011
        parsed_json(text)


def test_json_is_parsed_in_one_place():
    sources = Path(justright.__file__).parent.rglob("*.py")
    calls = [path.name for path in sources if re.search(r"json\.loads?\((?!json\.dumps)", path.read_text("utf-8"))]
    assert calls == ["files.py"]


def test_home_is_justright_home(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    assert home() == tmp_path


def test_home_is_the_user_cache_by_default(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", "")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert home() == tmp_path / ".cache" / "justright"


def test_validator_converts_plain_values():
    validate = validator_of(list[tuple[str, int]])
    assert validate([["a", 1]]) == [("a", 1)]
    assert validator_of(list[tuple[str, int]]) is validate, "created twice"
    with pytest.raises(ValueError, match="int"):
        validate([["a", "b"]])
