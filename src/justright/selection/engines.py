"""Where the passes of a selection run: in this process, in several, or on Ray, with the same answer to the bit.

A pass applies one function to every shard and merges what comes back in the order of the shards. An engine is that
application alone, an ordered map; it decides where and when, never what. Only results travel: sums and counts, or the
few features that k-means is placed on. A shard that refers to a file (`row_shards`) is read where the work is done.

How BLAS shares a product among threads shows in its last bits, which a steep beta density makes 1e-6 of a weight. So
the engines of `ENGINES` give each shard one thread and work on several shards at a time: their number of workers
changes nothing, on processors of one kind. Plain `in_process`, the default of `fit`, leaves BLAS all its threads and
agrees with them to single precision.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias, TypeVar

from justright.errors import JustrightError
from justright.parallel import in_order, n_cores

Item = TypeVar("Item")
Result = TypeVar("Result")
Total = TypeVar("Total")

AHEAD = 2
"""Shards in flight for each worker: one being worked on, one waiting, so that memory stays bounded."""


Engine: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
"""An ordered map: applies work to items, somewhere, and gives the results in the order of the items.

Work and items must be picklable unless the engine is `in_process`.
"""

OpenEngine: TypeAlias = Callable[[int | None], AbstractContextManager[Engine]]
"""From a number of workers, None for one a core, to an engine that lives as long as the `with` block.

Each worker holds a shard: at 768 dimensions, 1,000 classes and the shards of `row_shards`, some 150 MB.
"""


def in_process(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """One item after the other, here: the next is not asked for before the last is done."""
    return map(work, items)


def merge_all(into: Total, work: Callable[[Item], Any], items: Iterable[Item], engine: Engine) -> Total:
    """Merge what `work` makes of each item, in the order of the items, into an empty accumulator."""
    for part in engine(work, items):
        into.merge(part)  # type: ignore[attr-defined]
    return into


@contextmanager
def open_local(n_workers: int | None = None) -> Iterator[Engine]:
    """Threads of this process: no time to start, nothing to send, and numpy computes side by side."""
    n = worker_count(n_workers)
    with ThreadPoolExecutor(n) as executor:

        def engine(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
            with one_blas_thread():
                yield from in_order(lambda item: executor.submit(work, item), Future.result, items, n * AHEAD)

        yield engine


@contextmanager
def open_processes(n_workers: int | None = None) -> Iterator[Engine]:
    """Several processes on this machine.

    They are started anew rather than forked: a copy of a process with threads, as BLAS and torch have, can hang.
    """
    n = worker_count(n_workers)
    with ProcessPoolExecutor(n, multiprocessing.get_context("spawn"), one_blas_thread) as executor:

        def engine(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
            try:
                yield from in_order(lambda item: executor.submit(work, item), Future.result, items, n * AHEAD)
            except BrokenProcessPool as error:
                raise JustrightError(
                    "a worker process ended before its work was done",
                    expected="workers with enough memory, started from a program that can be imported",
                    advice="fewer workers; in a script, keep what it does under `if __name__ == '__main__':`",
                ) from error

        yield engine


@contextmanager
def open_ray(n_workers: int | None = None) -> Iterator[Engine]:
    """The Ray cluster that is there, or a local one for the time being."""
    from justright.selection.ray_engine import open_ray_tasks  # Ray is an extra, and slow to import

    with open_ray_tasks(n_workers) as engine:
        yield engine


ENGINES: dict[str, OpenEngine] = {"local": open_local, "processes": open_processes, "ray": open_ray}


def worker_count(n_workers: int | None) -> int:
    """The number asked for, or one worker a core."""
    if n_workers is not None and n_workers < 1:
        raise JustrightError(f"{n_workers} workers", expected="at least 1")
    return n_workers or n_cores()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Takes all threads but one from BLAS in this process, at once; as a context, gives them back at its end."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    return threadpool_limits(1, "blas")
