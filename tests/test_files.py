from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import justright
from justright.files import (
    bytes_of,
    home,
    leftovers,
    naming,
    parsed_json,
    reader_of,
    remove_leftovers,
    replacing,
    size_text,
    write_text,
)


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
    kept = {f".model.json.{os.getpid()}.tmp", ".mine.tmp", "a.1.tmp"}
    for name in (*kept, f".model.safetensors.{ended.pid}.tmp", f".no-process-has.{10**20}.tmp"):
        (tmp_path / name).write_text("half")
    remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == kept


@pytest.mark.parametrize(
    "raised",
    [
        OSError(errno.EFBIG, "Error writing bytes to file. Detail: [errno 27] File too large"),
        ValueError(f"Error while serializing: I/O error: File too large (os error {errno.EFBIG})"),
    ],
    ids=["pyarrow", "safetensors"],
)
def test_a_file_that_cannot_grow_is_named_whoever_writes_it(tmp_path, raised):
    with pytest.raises(OSError, match="File too large") as caught, replacing(tmp_path / "a"):
        raise raised
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(tmp_path / "a"))
    assert caught.value.strerror == "File too large"


def test_an_array_that_cannot_be_written_whole_counts_as_a_full_disk_and_other_errors_stay(tmp_path):
    with pytest.raises(OSError, match="full") as caught, naming(tmp_path / "a"):
        raise OSError("800 requested and 12 written")
    assert caught.value.errno == errno.ENOSPC
    for other in (OSError("no image"), ValueError("no number"), FileNotFoundError(errno.ENOENT, "gone", "b")):
        with pytest.raises(type(other)) as same, naming(tmp_path / "a"):
            raise other
        assert same.value is other
    assert other.filename == "b"


def test_leftovers_are_found_below_a_folder_too_and_sizes_are_counted_and_said(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    half = tmp_path / "banks" / "one" / f".rows.npy.{ended.pid}.tmp"
    half.parent.mkdir(parents=True)
    half.write_bytes(bytes(1500))
    (tmp_path / "whole").write_bytes(bytes(500))
    if os.name == "posix":
        assert leftovers(tmp_path) == [half]
    assert bytes_of(tmp_path) == bytes_of(half, tmp_path / "whole", tmp_path / "nowhere") == 2000
    assert [size_text(n) for n in (0, 999, 1500, 2_340_000_000)] == ["0 B", "999 B", "1.5 KB", "2.34 GB"]


def test_without_a_flush_it_is_whole_or_not_there_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda file: pytest.fail("flushed"))
    with replacing(tmp_path / "a", is_flushed=False) as temporary:
        temporary.write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("text", [b"[" * 100_000, '{"a":' * 100_000, "", b"\xff", "[1"])
def test_what_is_no_json_is_a_value_error_however_deep_it_is(text):
    with pytest.raises(ValueError):  # noqa: PT011
        parsed_json(text)


def test_every_reader_of_json_minds_its_depth():
    sources = Path(justright.__file__).parent.rglob("*.py")
    calls = [path.name for path in sources if re.search(r"json\.loads?\((?!json\.dumps)", path.read_text("utf-8"))]
    assert calls == ["files.py"]


def test_the_environment_says_where_files_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    assert home() == tmp_path


def test_without_it_the_cache_of_the_user_is_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", "")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert home() == tmp_path / ".cache" / "justright"


def test_plain_values_become_an_object_of_their_type_or_are_refused():
    reader = reader_of(list[tuple[str, int]])
    assert reader([["a", 1]]) == [("a", 1)]
    assert reader_of(list[tuple[str, int]]) is reader, "made once"
    with pytest.raises(ValueError, match="int"):
        reader([["a", "b"]])
