"""Locks between processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from justright.utils import locks
from justright.utils.locks import Lock, LockedError, lock_file, locked_file

HOLD = """
import sys
from pathlib import Path
from justright.utils import locks
held = getattr(locks, sys.argv[1])(Path(sys.argv[2]))
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / ".lock"


@pytest.fixture
def hold():
    """Starts processes that hold a lock until they are killed."""
    started = []

    def start(kind, path):
        words = [sys.executable, "-c", HOLD, kind, path]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def kill(process):
    process.kill()
    process.wait()


def in_another_thread(function, *arguments):
    """Call a function in a thread of its own: filelock refuses to wait for a lock that the same thread holds."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(function, *arguments).result()


def test_second_lock_is_rejected_until_the_first_is_released(path):
    first = Lock(path)
    with pytest.raises(LockedError, match=rf"^process {os.getpid()} since \d{{4}}-\d\d-\d\d \d"):
        Lock(path)
    first.release()
    Lock(path).release()
    assert list(path.parent.iterdir()) == []


def test_waiting_process_gets_the_lock_next(path, caplog):
    first = in_another_thread(Lock, path)
    threading.Timer(0.2, first.release).start()
    Lock(path, wait=True).release()
    assert "waiting until it is done" in caplog.text


def test_lock_ends_with_its_process(path, hold):
    process = hold("Lock", path)
    with pytest.raises(LockedError, match=f"^process {process.pid} since"):
        Lock(path)
    kill(process)
    assert path.exists()
    Lock(path).release()
    assert not path.exists()


def test_one_of_many_threads_holds_the_lock(path):
    n_inside, most = Counter(), []

    def enter(number):
        lock = Lock(path, wait=True)
        n_inside["now"] += 1
        most.append(n_inside["now"])
        n_inside["now"] -= 1
        lock.release()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(enter, range(12)))
    assert most == [1] * 12
    assert list(path.parent.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forked_process_does_not_release_what_its_parent_holds(path):
    lock, file = Lock(path), locked_file(path.with_name("read"))
    child = os.fork()
    if not child:
        lock.release()
        file.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    with pytest.raises(LockedError):
        Lock(path)
    assert locked_file(path.with_name("read"), wait=False) is None
    lock.release()
    file.close()


def test_lock_that_cannot_be_written_is_released(path, monkeypatch):
    def fail(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(type(path), "write_text", fail)
    with pytest.raises(OSError, match="no space left"):
        Lock(path)
    monkeypatch.undo()
    Lock(path).release()


def test_empty_lock_file_belongs_to_another_process(path):
    first = Lock(path)
    path.write_text("")
    with pytest.raises(LockedError, match=r"^another process$"):
        Lock(path)
    first.release()


def test_readers_share_a_file_and_keep_a_writer_out(path):
    one, two = locked_file(path, is_shared=True), locked_file(path, is_shared=True)
    one.close()
    assert locked_file(path, wait=False) is None
    two.close()
    locked_file(path, wait=False).close()


def test_reader_waits_for_the_writer(path):
    writer = locked_file(path)
    assert locked_file(path, is_shared=True, wait=False) is None
    threading.Timer(0.2, writer.close).start()
    locked_file(path, is_shared=True).close()


def test_killed_reader_does_not_block(path, hold):
    process = hold("locked_file", path)
    assert locked_file(path, wait=False) is None
    kill(process)
    locked_file(path, wait=False).close()


def test_waiting_process_locks_the_file_that_replaced_a_deleted_one(path):
    writer = locked_file(path)

    def delete():
        path.unlink()
        writer.close()

    threading.Timer(0.2, delete).start()
    second = locked_file(path)
    assert locked_file(path, wait=False) is None
    second.close()


def test_file_system_without_locks_counts_as_locked(path, monkeypatch):
    def fail(*_, **__):
        raise OSError("not supported")

    monkeypatch.setattr(locks, "lock_file", fail)
    assert locked_file(path, wait=False) is None
    locked_file(path).close()


def test_locked_files_keep_writers_out_and_are_shared_by_readers(tmp_path):
    pytest.importorskip("fcntl")
    path = tmp_path / "log"
    with path.open("a") as one, path.open("a") as two:
        lock_file(one, is_shared=True)
        lock_file(two, is_shared=True)
        with path.open("a") as three:
            assert not lock_file(three, wait=False)


def test_nothing_is_locked_without_fcntl(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "HAS_LOCKS", False)  # as on Windows
    with (tmp_path / "log").open("a") as one, (tmp_path / "log").open("a") as two:
        assert lock_file(one, wait=False)
        assert lock_file(two, wait=False)
