"""Work that is done side by side and comes back in order."""

from __future__ import annotations

import gc
import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, TypeVar

BLOCK = 1 << 16

Item = TypeVar("Item")
Pending = TypeVar("Pending")
Result = TypeVar("Result")


def in_order(
    submit: Callable[[Item], Pending], result: Callable[[Pending], Result], items: Iterable[Item], n_ahead: int
) -> Iterator[Result]:
    """Results in the order of the items, with at most `n_ahead` items submitted and not yet given back."""
    pending: deque[Pending] = deque()
    for item in items:
        if len(pending) == n_ahead:
            yield result(pending.popleft())
        pending.append(submit(item))
    while pending:
        yield result(pending.popleft())


def in_threads(
    work: Callable[[Item], Result], items: Iterable[Item], n_threads: int, n_ahead: int | None = None
) -> Generator[Result, None, None]:
    """Results of `work` in the order of the items, computed by threads; 0 of them means in the calling thread.

    At most `n_ahead` items, by default four a thread, are begun and not yet given back: a million items do not wait
    in memory. Whoever stops early waits only for what is being worked on.
    """
    if n_threads == 0:
        yield from map(work, items)
        return
    threads = ThreadPoolExecutor(n_threads)
    try:
        yield from in_order(lambda item: threads.submit(work, item), Future.result, items, n_ahead or 4 * n_threads)
    finally:
        threads.shutdown(cancel_futures=True)


def blas_threads(n: int) -> AbstractContextManager[Any]:
    """Has BLAS compute with so many threads in this process; as a context, gives back at its end what it had."""
    limited: AbstractContextManager[Any] = _libraries(len(sys.modules)).limit(limits=n, user_api="blas")
    return limited


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> Any:
    """The libraries of BLAS, looked for anew after an import: that takes as long as assigning thousands of images."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def in_blocks(values: Any, size: int = BLOCK) -> Iterator[list[Any]]:
    """A long numpy array or arrow column as plain lists, each of which is gone before the next comes."""
    for start in range(0, len(values), size):
        block = values[start : start + size]
        yield block.tolist() if hasattr(block, "tolist") else block.to_pylist()


def raise_gc_threshold() -> None:
    """Have this process look for garbage after every 10,000 new objects, not after 700.

    What is imported stays. Looking through it while torch was loaded took a tenth of the time of a short command.
    """
    gc.set_threshold(10_000)


def n_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
