"""Tasks in processes of their own, some of which fail or are killed."""

from __future__ import annotations

import os
import signal
import time

import pytest

from justright.benchmark.side_by_side import side_by_side
from justright.utils.errors import JustrightError


def numbers(n, ends_by=None, stop=None):
    yield from range(n)
    if ends_by == "error":
        raise ValueError("no such number")
    if ends_by == "exit":
        os._exit(7)
    if ends_by == "kill":
        while stop and not stop.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)


def killed(own_number, stop):
    own_number.write_text(str(os.getpid()))
    yield from numbers(1, "kill", stop)


def begin(begun, n, number_of_other=None):
    """Goes on when the other process is gone, and the one that started it knows."""
    begun.touch()
    while number_of_other and is_there(number_of_other):
        time.sleep(0.01)
    yield from numbers(n)


def is_there(number):
    try:
        os.kill(int(number.read_text()), 0)
    except (ProcessLookupError, FileNotFoundError, ValueError) as error:
        return not isinstance(error, ProcessLookupError)
    return True


def any_of(name, *task):
    yield from {"numbers": numbers, "begin": begin, "killed": killed}[name](*task)


def keep(found, lines):
    """Also what came before an error; `list.extend` would lose it."""
    for each in lines:
        found.append(each)


@pytest.mark.usefixtures("forked_workers")
def test_everything_that_is_found_comes_back_whatever_the_number_of_processes():
    tasks = {str(n): ("numbers", n) for n in range(4)}
    for n_processes in (1, 3):
        assert sorted(side_by_side(any_of, tasks, n_processes)) == [0, 0, 0, 1, 1, 2]


@pytest.mark.usefixtures("forked_workers")
@pytest.mark.parametrize(
    ("ends_by", "said"),
    [
        ("error", "bad: ValueError: no such number"),
        ("exit", "bad: its process ended with 7"),
        ("kill", "bad: its process was ended by SIGKILL; fewer --jobs need less memory"),
    ],
)
def test_a_process_that_fails_or_is_killed_is_told_after_what_it_found(ends_by, said):
    found, tasks = [], {"bad": ("numbers", 2, ends_by), "never": ("numbers", 9)}
    with pytest.raises(JustrightError, match=said) as caught:
        keep(found, side_by_side(any_of, tasks, 1))
    assert found == [0, 1]
    assert caught.value.advice.endswith("what was finished is kept")


@pytest.mark.usefixtures("forked_workers")
def test_tasks_on_their_way_are_finished_and_no_other_is_begun(tmp_path):
    tasks = {
        "bad": ("killed", tmp_path / "number", tmp_path / "begun"),
        "good": ("begin", tmp_path / "begun", 500, tmp_path / "number"),
        "never": ("begin", tmp_path / "never", 1),
    }
    found = []
    with pytest.raises(JustrightError, match="bad: its process was ended by SIGKILL"):
        keep(found, side_by_side(any_of, tasks, 2))
    assert sorted(found) == [0, *range(500)]
    assert not (tmp_path / "never").exists()


def test_whoever_stops_early_ends_the_processes(tmp_path):
    lines = side_by_side(any_of, {"endless": ("numbers", 1, "kill", tmp_path / "never")}, 1)
    assert next(lines) == 0
    ((_, process),) = lines.gi_frame.f_locals["running"].values()
    lines.close()
    process.join(timeout=60)
    assert process.exitcode == -signal.SIGTERM
