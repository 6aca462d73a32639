"""Several tasks at once, a process each: what they find is passed on at once, and one that is killed is told."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from justright.utils.errors import JustrightError
from justright.utils.parallel import raise_gc_threshold

T = TypeVar("T")

ENDED = "ended"
FAILED = "failed"
FOUND = "found"


def side_by_side(
    work: Callable[..., Iterator[T]], tasks: Mapping[str, tuple[Any, ...]], n_processes: int
) -> Iterator[T]:
    """What `work` gives for each task, in the order in which it is found.

    After a failure no other task is begun; those that are on their way are finished, and then the failure is raised.

    Parameters:
        work: a function at the top of a module, so that another process finds it.
        tasks: the arguments for it, by the name that an error message uses.
        n_processes: how many tasks to carry out at once.
    """
    waiting, running, failures = deque(tasks.items()), dict[Connection, tuple[str, Any]](), list[str]()
    try:
        while running or (waiting and not failures):
            while waiting and not failures and len(running) < n_processes:
                name, task = waiting.popleft()
                receiver, process = _started(work, task)
                running[receiver] = name, process
            ready = wait(list(running))
            for receiver in [each for each in running if each in ready]:
                kind, value = _received(receiver)
                if kind == FOUND:
                    yield value
                    continue
                name, process = running.pop(receiver)
                process.join()
                receiver.close()
                if kind == FAILED:
                    failures.append(f"{name}: {value or _why_it_ended(process.exitcode)}")
    finally:
        for _, process in running.values():
            process.terminate()
    if failures:
        raise JustrightError(
            "\n".join(failures), advice="mend it and give the same command again: what was finished is kept"
        )


def _started(work: Callable[..., Iterator[Any]], task: tuple[Any, ...]) -> tuple[Connection, Any]:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_carry_out, args=(sender, work, task), daemon=True)
    process.start()
    sender.close()  # only the process holds it now: when it ends, however it does, the receiver notices
    return receiver, process


def _carry_out(sender: Connection, work: Callable[..., Iterator[Any]], task: tuple[Any, ...]) -> None:
    raise_gc_threshold()
    try:
        for each in work(*task):
            sender.send((FOUND, each))
    except Exception as error:
        sender.send((FAILED, f"{type(error).__name__}: {error}"))
    else:
        sender.send((ENDED, None))


def _received(receiver: Connection) -> tuple[str, Any]:
    try:
        found: tuple[str, Any] = receiver.recv()
    except (EOFError, OSError):  # it ended without a word, or within one
        return FAILED, None
    return found


def _why_it_ended(code: int) -> str:
    if code >= 0:
        return f"its process ended with {code}"
    return f"its process was ended by {signal.Signals(-code).name}; fewer --jobs need less memory"
