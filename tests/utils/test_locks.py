"""Leases between processes, and between machines: another machine is a process with another name for its host."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from justright.utils import locks
from justright.utils.locks import EXPIRY, HEARTBEAT, WRITER, LeaseHeldError, is_gone, lease, lock, renewed, writer_name

HOLD = """
import sys, time
from pathlib import Path
from justright.utils import locks
if sys.argv[2] != "here":
    locks._host = lambda: sys.argv[2]
    locks.os.getpid = lambda: 1
held = locks.lease(Path(sys.argv[1]), is_shared="shared" in sys.argv)
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def place(tmp_path):
    return tmp_path / "folder" / ".place"


@pytest.fixture
def hold(place):
    """Starts processes that hold the place until they are killed, on this machine or on one with another name."""
    started = []

    def start(host="here", *more):
        words = [sys.executable, "-c", HOLD, place, host, *more]
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


def leases(place):
    return sorted(place.parent.iterdir())


def silent_for(place, seconds):
    """As if the leases that are there had not been renewed for so long."""
    for path in leases(place):
        then = path.stat().st_mtime - seconds
        os.utime(path, (then, then))


def test_a_second_lease_is_refused_until_the_first_ends(place):
    first = lease(place)
    for wait in ("never", "unsure"):
        with pytest.raises(LeaseHeldError, match=rf"^process {os.getpid()} since \d{{4}}-\d\d-\d\d \d"):
            lease(place, wait=wait)
    assert leases(place) == [first.path], "whoever is refused leaves nothing"
    first.release()
    lease(place).release()
    assert leases(place) == []


def test_a_lease_is_shared_by_those_who_ask_for_that(place):
    one, two = lease(place, is_shared=True), lease(place, is_shared=True)
    one.release()
    with pytest.raises(LeaseHeldError):
        lease(place)
    two.release()
    alone = lease(place)
    with pytest.raises(LeaseHeldError):
        lease(place, is_shared=True)
    alone.release()


def test_places_side_by_side_have_nothing_to_do_with_each_other(place):
    for each in (place, place.with_name(".place.more"), place.with_name(".plac")):
        lease(each, wait="never")


def test_who_waits_holds_it_next(place):
    first = lease(place)
    threading.Timer(0.2, first.release).start()
    lease(place, wait="always").release()


def test_the_lease_of_a_killed_process_is_taken_over_at_once(place, hold):
    kill(hold())
    assert len(leases(place)) == 1
    second = lease(place, wait="never")
    assert leases(place) == [second.path]


def test_whoever_shares_a_lease_removes_those_of_killed_processes(place, hold):
    kill(hold("here", "shared"))
    mine = lease(place, is_shared=True)
    assert leases(place) == [mine.path]


def test_a_process_that_has_ended_but_was_not_waited_for_holds_nothing(place, hold):
    process = hold()
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
    lease(place, wait="never")


def test_another_process_that_got_the_same_id_holds_nothing(place, monkeypatch):
    started = locks._started
    monkeypatch.setattr(locks, "_started", lambda process: "1")
    old = lease(place)
    monkeypatch.setattr(locks, "_started", started)
    assert old.path != lease(place, wait="never").path
    assert not old.path.exists()


def test_a_lease_of_another_machine_holds_though_no_such_process_runs_here(place, hold):
    kill(hold("far"))  # here nobody can tell
    with pytest.raises(LeaseHeldError, match=r"^process 1 on "):
        lease(place, wait="never")
    silent_for(place, EXPIRY - 60)
    with pytest.raises(LeaseHeldError):
        lease(place, wait="never")


def test_a_lease_of_another_machine_that_was_not_renewed_is_taken_over(place, hold):
    kill(hold("far"))
    silent_for(place, EXPIRY + 60)
    mine = lease(place)
    assert leases(place) == [mine.path]


def test_who_is_not_sure_watches_the_heartbeat(place, hold, monkeypatch, caplog):
    kill(hold("far"))
    looks = []

    def renew(seconds):
        looks.append(seconds)
        if len(looks) == 5:
            silent_for(place, -HEARTBEAT)  # a moment ago

    monkeypatch.setattr(locks.time, "sleep", renew)
    with pytest.raises(LeaseHeldError):
        lease(place)
    assert len(looks) == 5
    assert "waiting to see whether it still runs" in caplog.text
    monkeypatch.setattr(locks.time, "sleep", lambda seconds: silent_for(place, 60))
    lease(place)


def test_two_machines_with_the_same_process_id_are_two(place, hold):
    hold("one", "shared")
    hold("two", "shared")
    assert len(leases(place)) == 2
    names = [WRITER.search(path.name) for path in leases(place)]
    assert [(name["host"], name["process"]) for name in names] == [("one", "1"), ("two", "1")]


def test_of_many_that_try_at_once_one_holds_it(place):
    n_inside, most = Counter(), []

    def enter(number):
        held = lease(place, wait="always")
        n_inside["now"] += 1
        most.append(n_inside["now"])
        n_inside["now"] -= 1
        held.release()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(enter, range(12)))
    assert most == [1] * 12
    assert leases(place) == []


def test_the_heartbeat_renews_what_is_held_and_nothing_else(place):
    held, other = lease(place), place.with_name("other")
    other.write_text("")
    silent_for(place, 1000)
    with renewed(other):
        locks._heartbeat.renew()
        assert other.stat().st_mtime > held.path.stat().st_mtime - 500
    silent_for(place, 1000)
    before = other.stat().st_mtime
    locks._heartbeat.renew()
    assert held.path.stat().st_mtime > before + 500
    assert other.stat().st_mtime == before
    held.release()
    locks._heartbeat.renew()
    assert not held.path.exists()


def test_a_thread_renews_them_while_there_are_any(place, monkeypatch):
    monkeypatch.setattr(locks, "HEARTBEAT", 0.01)
    heartbeat = locks._Heartbeat()
    path = place.parent
    path.mkdir()
    os.utime(path, (0, 0))
    heartbeat.add(path)
    thread = heartbeat._thread
    while not path.stat().st_mtime:
        pass
    heartbeat.remove(path)
    thread.join()
    assert heartbeat._thread is None
    heartbeat.add(path)
    assert heartbeat._thread is not thread
    heartbeat.remove(path)


def test_a_lease_may_be_released_while_another_is_added(place):
    """As when garbage is collected in the midst of it, and a reader of a bank goes."""
    first = lease(place)

    def both():
        with locks._heartbeat._guard:
            first.release()

    thread = threading.Thread(target=both, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_neither_ends_nor_renews_the_lease_of_its_parent(place):
    held = lease(place)
    child = os.fork()
    if not child:
        held.release()
        os._exit(len(locks._heartbeat._paths))
    assert os.waitpid(child, 0)[1] == 0
    assert held.path.exists()
    held.release()


def test_a_folder_that_goes_at_this_moment_is_made_again(place, monkeypatch):
    write, lost = type(place).write_text, []

    def write_text(path, *text, **how):
        if not lost:
            lost.append(path.parent.rmdir())
        return write(path, *text, **how)

    monkeypatch.setattr(type(place), "write_text", write_text)
    lease(place).release()
    assert lost


def test_a_lease_without_a_word_in_it_yet_is_another_process(place):
    place.parent.mkdir()
    place.with_name(f".place.alone.far~1~1~{'0' * 16}.lease").touch()
    with pytest.raises(LeaseHeldError, match=r"^another process$"):
        lease(place, wait="never")


def test_who_wrote_a_file_is_gone_or_is_not(tmp_path, monkeypatch):
    mine = tmp_path / f".a.{writer_name()}.tmp"
    mine.touch()
    os.utime(mine, (0, 0))
    assert not is_gone(mine, expiry=1.0), "it runs, however long the file was not touched"
    monkeypatch.setattr(locks, "_host", lambda: "far")
    assert is_gone(mine, expiry=1.0)
    os.utime(mine)
    assert not is_gone(mine, expiry=1000.0)


def test_of_another_users_process_nothing_but_that_it_runs_is_known(monkeypatch):
    def refuse(process, signal):
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    monkeypatch.setattr(locks, "_started", lambda process: None)  # where /proc hides processes of others
    assert locks._is_running(7, "1")


def test_locks_of_open_files_keep_writers_out_and_are_shared_by_readers(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    path = tmp_path / "log"
    with path.open("a") as one, path.open("a") as two:
        lock(one, is_shared=True)
        lock(two, is_shared=True)
        with path.open("a") as three, pytest.raises(BlockingIOError):
            fcntl.flock(three, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_without_locks_of_the_system_nothing_is_locked(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as on Windows
    with (tmp_path / "log").open("a") as one, (tmp_path / "log").open("a") as two:
        lock(one)
        lock(two)
