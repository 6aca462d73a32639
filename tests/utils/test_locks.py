"""Locks between processes. In tests another machine is a process with another name for its host."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from justright.utils import locks
from justright.utils.locks import EXPIRY, Lock, LockedError, ReaderLease, is_gone, lock_unread, writer_name

HOLD = """
import sys
from pathlib import Path
from justright.utils import locks
if sys.argv[3] != "here":
    locks._host = lambda: sys.argv[3]
    locks.os.getpid = lambda: 1
held = getattr(locks, sys.argv[1])(Path(sys.argv[2]))
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / ".lock"


@pytest.fixture
def bank(tmp_path):
    (tmp_path / "bank").mkdir()
    return tmp_path / "bank"


@pytest.fixture
def hold():
    """Starts processes that hold a `Lock` or a `ReaderLease` until they are killed."""
    started = []

    def start(kind, path, host="here"):
        words = [sys.executable, "-c", HOLD, kind, path, host]
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


def leases(bank):
    return sorted(bank.parent.glob("*.lease"))


def is_free(bank):
    guard = lock_unread(bank)
    if guard is not None:
        guard.release()
    return guard is not None


def test_second_lock_is_refused_until_the_first_is_released(path):
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
def test_forked_process_does_not_release_what_its_parent_holds(path, bank):
    lock, lease = Lock(path), ReaderLease(bank)
    child = os.fork()
    if not child:
        lock.release()
        lease.release()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    with pytest.raises(LockedError):
        Lock(path)
    assert not is_free(bank)
    lock.release()
    lease.release()


def test_lock_that_cannot_be_written_is_released(path, monkeypatch):
    def fail(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(type(path), "write_text", fail)
    with pytest.raises(OSError, match="no space left"):
        Lock(path)
    monkeypatch.undo()
    Lock(path).release()


def test_lock_without_a_name_in_it_yet_is_of_another_process(path):
    first = Lock(path)
    path.write_text("")
    with pytest.raises(LockedError, match=r"^another process$"):
        Lock(path)
    first.release()


def test_folder_with_readers_is_not_free(bank):
    one, two = ReaderLease(bank), ReaderLease(bank)
    one.release()
    assert not is_free(bank)
    two.release()
    assert is_free(bank)
    assert list(bank.parent.iterdir()) == [bank]


def test_reader_waits_while_the_folder_is_deleted(bank):
    guard = in_another_thread(lock_unread, bank)
    assert lock_unread(bank) is None
    threading.Timer(0.2, guard.release).start()
    lease = ReaderLease(bank)
    assert not is_free(bank)
    lease.release()


def test_killed_reader_does_not_block(bank, hold):
    process = hold("ReaderLease", bank)
    assert not is_free(bank)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
    assert is_free(bank)


def test_reader_on_another_machine_blocks_until_its_lease_expires(bank, hold):
    kill(hold("ReaderLease", bank, "far"))  # nobody here can tell that it was killed
    (lease,) = leases(bank)
    for age, is_expired in ((0, False), (EXPIRY - 60, False), (EXPIRY + 60, True)):
        then = (bank.parent / "now").touch() or (bank.parent / "now").stat().st_mtime - age
        os.utime(lease, (then, then))
        assert is_free(bank) == is_expired


def test_process_with_a_reused_id_holds_nothing(bank, monkeypatch):
    monkeypatch.setattr(locks, "_started", lambda process: "1")
    old = ReaderLease(bank)
    monkeypatch.undo()
    assert is_free(bank)
    old.release()


def test_lease_is_renewed_while_it_is_held(bank, monkeypatch):
    monkeypatch.setattr(locks, "HEARTBEAT", 0.01)
    lease = ReaderLease(bank)
    os.utime(lease.path, (0, 0))
    while not lease.path.stat().st_mtime:
        pass
    lease.release()
    assert leases(bank) == []


def test_file_of_an_ended_process_is_gone(tmp_path, monkeypatch):
    mine = tmp_path / f".a.{writer_name()}.tmp"
    mine.touch()
    os.utime(mine, (0, 0))
    assert not is_gone(mine, expiry=1.0), "its process runs, however old the file is"
    monkeypatch.setattr(locks, "_host", lambda: "far")
    assert is_gone(mine, expiry=1.0)
    os.utime(mine)
    assert not is_gone(mine, expiry=1000.0)


def test_process_of_another_user_counts_as_running(monkeypatch):
    def refuse(process, signal):
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    monkeypatch.setattr(locks, "_started", lambda process: None)  # where /proc hides processes of others
    assert locks._is_running(7, "1")
