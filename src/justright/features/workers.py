"""Threads that compute with torch, one core each.

Threads, because Pillow and torch release the interpreter's lock and nothing has to be copied between processes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import torch

from justright.parallel import in_threads

Task = TypeVar("Task")
Result = TypeVar("Result")


def on_one_core_each(
    work: Callable[[Task], Result], tasks: Iterable[Task], n_workers: int
) -> Generator[Result, None, None]:
    """Results in the order of the tasks, with little more begun than is being worked on: batches take memory."""
    return in_threads(work, tasks, n_workers, n_workers + 1, partial(torch.set_num_threads, 1))


@contextmanager
def one_core_a_thread() -> Iterator[None]:
    """Have torch compute with one core a thread meanwhile."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
