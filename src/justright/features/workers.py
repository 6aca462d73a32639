"""Threads that work ahead, one core each, and give their results in the order of the tasks.

Threads, because Pillow and torch release the interpreter's lock and nothing has to be copied between processes.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Task = TypeVar("Task")
Result = TypeVar("Result")


def in_order(
    work: Callable[[Task], Result], tasks: Iterator[Task], n_workers: int
) -> Generator[tuple[Task, Result], None, None]:
    """Do the tasks in threads and give the results in their order, with little more begun than is being worked on."""
    if n_workers == 0:
        yield from ((task, work(task)) for task in tasks)
        return
    threads = ThreadPoolExecutor(n_workers, initializer=torch.set_num_threads, initargs=(1,))
    begun: deque[tuple[Task, Future[Result]]] = deque()
    try:
        for task in tasks:
            begun.append((task, threads.submit(work, task)))
            if len(begun) > n_workers + 1:
                first, future = begun.popleft()
                yield first, future.result()
        while begun:
            first, future = begun.popleft()
            yield first, future.result()
    finally:
        threads.shutdown(cancel_futures=True)  # after Ctrl-C, wait only for the batches being computed


@contextmanager
def one_core_a_thread() -> Iterator[None]:
    """Have torch compute with one core a thread meanwhile."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def n_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
