"""Two commands and one folder: the second is rejected; the lock of a killed process is released."""

from __future__ import annotations

import signal

import pytest
from tests.bad_day.commands import discover, results, tiny_suite, wait_for
from tests.bad_day.limited import call_limited
from tests.forked_programs import Program

from justright.runs.run_folder import LOCK


@pytest.fixture
def started(tmp_path):
    """Starts a command that owns tmp_path / "out", and stops it there until it is killed."""
    processes = []

    def begin(*command):
        process = Program(*command, home=tmp_path / "home")
        processes.append(process)
        wait_for(tmp_path / "out" / f"{LOCK}*", process)
        process.send_signal(signal.SIGSTOP)
        return process

    yield begin
    for process in processes:
        process.kill()


def test_second_discover_is_rejected_until_the_first_is_killed(tmp_path, started):
    out, home = tmp_path / "out", tmp_path / "home"
    first = started(*discover(out))
    cold = call_limited(home, None, *discover(out))
    done = call_limited(home, None, *discover(tmp_path / "undisturbed"))
    assert done.code == 0, done.err
    warm = call_limited(home, None, *discover(out))
    for second in (cold, warm):
        assert second.code == 1
        assert f"is being written by process {first.pid} since 20" in second.err
        assert "Traceback" not in second.err
    (left,) = out.iterdir()  # nothing was written behind the first one's back
    assert left.name.startswith(LOCK)
    first.kill()
    assert left.exists()
    third = call_limited(home, None, *discover(out))
    assert third.code == 0, third.err
    assert results(out) == results(tmp_path / "undisturbed")
    assert not list(out.glob(f"{LOCK}*"))


def test_second_suite_and_demo_are_rejected(tmp_path, started):
    suite = ("benchmark", "run", tiny_suite(tmp_path), "--out", tmp_path / "out")
    first = started(*suite)
    for command in (suite, ("demo", "--out", tmp_path / "out")):
        second = call_limited(tmp_path / "home", None, *command)
        assert second.code == 1
        assert f"is being written by process {first.pid} since 20" in second.err
    first.kill()
    done = call_limited(tmp_path / "home", None, *suite, "--only", "digits")
    assert done.code == 0, done.err
    assert len((tmp_path / "out" / "results.jsonl").read_text().splitlines()) == 2
