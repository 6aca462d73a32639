"""Engines: one function applied to many items, somewhere, with the results in the order of the items.

An engine decides where and when, never what. Only items and results travel: a few rows of a table, features, sums. What
refers to a file (`row_shards`) is read where the work is done. A worker that is lost on the way, killed or out of
memory, is replaced, and its items are given again, up to `RETRIES` times.

How BLAS shares a product among threads shows in its last bits, which a steep beta density makes 1e-6 of a weight. So
the engines of `ENGINES` give each item one thread and work on several at a time: their number of workers changes
nothing, on processors of one kind. Plain `in_process`, the default of a selector's `fit`, leaves BLAS all its threads
and agrees with them to single precision.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any, TypeAlias, TypeVar

from justright.utils.errors import JustrightError
from justright.utils.parallel import blas_threads, in_threads, n_cores

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 2  # items in flight for each worker: one being worked on, one waiting, so that memory stays bounded
RETRIES = 3  # how often an item is given again that was lost with its worker

Engine: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Generator[Any, None, None]]
"""An ordered map: applies work to items, somewhere, and gives the results in the order of the items.

Work and items must be picklable unless they stay in this process, as with `in_process` and `threads`.
"""

OpenEngine: TypeAlias = Callable[[int | None], AbstractContextManager[Engine]]
"""From a number of workers, None for one a core, to an engine that lives as long as the `with` block.

Each worker holds an item: of a selection at 768 dimensions, 1,000 classes and the shards of `row_shards`, some 150 MB.
"""


def in_process(work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
    """One item after the other, here: the next is not asked for before the last is done."""
    yield from map(work, items)


def threads(n_threads: int, n_ahead: int | None = None) -> Engine:
    """So many threads of this process, 0 for none; see `in_threads`."""
    return lambda work, items: in_threads(work, items, n_threads, n_ahead)


@contextmanager
def open_local(n_workers: int | None = None) -> Iterator[Engine]:
    """Threads of this process: no time to start, nothing to send, and numpy computes side by side."""
    n = worker_count(n_workers)

    def engine(work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
        with blas_threads(1), closing(in_threads(work, items, n, n * AHEAD)) as results:
            yield from results

    yield engine


def worker_count(n_workers: int | None) -> int:
    """The number asked for, or one worker a core."""
    if n_workers is not None and n_workers < 1:
        raise JustrightError(f"{n_workers} workers", expected="at least 1")
    return n_workers or n_cores()
