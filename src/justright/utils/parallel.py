"""Parallel work: one function applied to many items, with the results in the order of the items.

An engine decides where the work runs: in threads, in processes of this machine, or on Ray. It never changes a result.
Only items and results travel: a few rows of a table, features, sums. `row_shards` of a file are read where the work is
done. A worker that is killed or runs out of memory is replaced, and its items are retried up to `RETRIES` times.

The number of BLAS threads changes the last bits of a product. So the engines of `ENGINES` give each item one thread and
work on several items at a time: their number of workers changes nothing, on processors of one kind. `in_process`, the
default of a selector's `fit`, leaves BLAS all its threads and agrees with them to single precision.
"""

from __future__ import annotations

import gc
import importlib
import logging
import multiprocessing
import os
import pickle
import secrets
import shutil
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, closing, contextmanager
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias, TypeVar

from justright.utils.errors import JustrightError
from justright.utils.registry import Registry

Item = TypeVar("Item")
Pending = TypeVar("Pending")
Result = TypeVar("Result")

AHEAD_PER_WORKER = 2  # items submitted: one in work, one waiting, so that memory stays bounded
RETRIES = 3  # how often an item is retried that was lost with its worker

Engine: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Generator[Any, None, None]]
"""An ordered map: applies work to items and yields the results in the order of the items.

Work and items must be picklable unless they stay in this process, as with `in_process` and `threads`.
"""

OpenEngine: TypeAlias = Callable[[int | None], AbstractContextManager[Engine]]
"""From a number of workers, None for one per core, to an engine that lives as long as the `with` block.

Each worker holds an item: of a selection at 768 dimensions, 1,000 classes and the shards of `row_shards`, some 150 MB.
"""

ENGINES: Registry[OpenEngine] = Registry("engine")
ENGINES.add("local", "justright.utils.parallel:open_local", "threads of this process")
ENGINES.add("processes", "justright.utils.parallel:open_processes", "several processes of this machine")
ENGINES.add("ray", "justright.utils.parallel:open_ray", "a Ray cluster; install 'justright[ray]'")


def in_order(
    submit: Callable[[Item], Pending], result: Callable[[Pending], Result], items: Iterable[Item], n_ahead: int
) -> Iterator[Result]:
    """Yield results in the order of the items, with at most `n_ahead` items submitted ahead."""
    pending: deque[Pending] = deque()
    for item in items:
        if len(pending) == n_ahead:
            yield result(pending.popleft())
        pending.append(submit(item))
    while pending:
        yield result(pending.popleft())


def in_process(work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
    """Work on one item after the other in this thread; the next item is read after the last one is done."""
    yield from map(work, items)


def in_threads(
    work: Callable[[Item], Result], items: Iterable[Item], n_threads: int, n_ahead: int | None = None
) -> Generator[Result, None, None]:
    """Yield results in the order of the items, computed by threads; with 0 threads, by the calling one.

    At most `n_ahead` items, by default four per thread, are submitted ahead: a million items do not wait in memory.
    Closing the generator early waits only for the items that are in work.
    """
    if n_threads == 0:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(n_threads)
    try:
        yield from in_order(lambda item: pool.submit(work, item), Future.result, items, n_ahead or 4 * n_threads)
    finally:
        pool.shutdown(cancel_futures=True)


def threads(n_threads: int, n_ahead: int | None = None) -> Engine:
    """An engine of threads that all share the BLAS threads; see `in_threads`."""
    return lambda work, items: in_threads(work, items, n_threads, n_ahead)


@contextmanager
def open_local(n_workers: int | None = None) -> Iterator[Engine]:
    """Threads of this process: nothing to start or to send, and numpy releases the interpreter's lock."""
    n = worker_count(n_workers)

    def engine(work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
        with blas_threads(1), closing(in_threads(work, items, n, n * AHEAD_PER_WORKER)) as results:
            yield from results

    yield engine


def worker_count(n_workers: int | None) -> int:
    """The requested number of workers, or one per core."""
    if n_workers is not None and n_workers < 1:
        raise JustrightError(f"{n_workers} workers", expected="at least 1")
    return n_workers or n_cores()


def n_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def blas_threads(n: int) -> AbstractContextManager[Any]:
    """Limit BLAS to so many threads in this process; as a context manager, restores the limit at its end."""
    limited: AbstractContextManager[Any] = _blas_libraries(len(sys.modules)).limit(limits=n, user_api="blas")
    return limited


@lru_cache(maxsize=1)
def _blas_libraries(n_modules: int) -> Any:
    """The loaded BLAS libraries. The search takes as long as assigning thousands of images: once per new import."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def raise_gc_threshold() -> None:
    """Run the garbage collector after every 10,000 new objects instead of 700.

    Imported modules stay. Scanning them while torch was loaded took a tenth of the time of a short command.
    """
    gc.set_threshold(10_000)


@contextmanager
def open_processes(n_workers: int | None = None) -> Iterator[Engine]:
    """Several processes on this machine.

    They are spawned, not forked: a copy of a process with threads, as BLAS and torch have, can hang.
    """
    yield partial(_in_processes, worker_count(n_workers))


def _in_processes(n_workers: int, work: Callable[[Any], Any], items: Iterable[Any]) -> Generator[Any, None, None]:
    """Start processes, apply work to items in them, and yield the results in order."""
    try:
        pickled = pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise JustrightError(
            f"the work cannot be sent to another process: {error}",
            expected="images in files, and functions at the top of a module",
            advice="engine local",
        ) from error
    with TemporaryDirectory(prefix="justright-") as folder:
        file = Path(folder, "work")  # read once by each process: it may hold a network
        file.write_bytes(pickled)
        del pickled
        yield from _retried(n_workers, file, iter(items))


def _retried(n_workers: int, file: Path, items: Iterator[Any]) -> Generator[Any, None, None]:
    """The results of the work in a file for the items, with new processes if one is lost."""
    n_lost = 0
    unfinished: deque[Any] = deque()  # items without a result, in order

    def remembered() -> Iterator[Any]:
        for item in items:
            unfinished.append(item)
            yield item

    while True:
        # Only the name of the file is sent: the start of a process that ends before it has read more than a pipe holds
        # would never return.
        executor = ProcessPoolExecutor(
            n_workers, multiprocessing.get_context("spawn"), initializer=_prepare_worker, initargs=(file.parent,)
        )
        submit = partial(executor.submit, _apply_shared, file)  # type: ignore[call-arg]
        to_submit = chain(tuple(unfinished), remembered())
        try:
            for result in in_order(submit, Future.result, to_submit, n_workers * AHEAD_PER_WORKER):
                unfinished.popleft()
                n_lost = 0
                yield result
            return
        except BrokenProcessPool as error:  # all workers are stopped, and it is unknown whose item it was
            n_lost += 1
            if n_lost > RETRIES:
                raise JustrightError(
                    f"a worker process ended before its work was done, {n_lost} times",
                    expected="workers with enough memory, started from a program that can be imported",
                    advice="fewer workers; in a script, keep what it does under `if __name__ == '__main__':`",
                ) from error
        finally:
            executor.shutdown(cancel_futures=True)


def _prepare_worker(folder: Path) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the parent decides
    warnings.simplefilter("ignore")  # those of decoders; real problems are errors
    raise_gc_threshold()
    import numpy  # noqa: F401  # a limit has no effect on a library that is loaded later

    blas_threads(1)
    threading.Thread(target=_end_with_parent, args=(folder,), daemon=True).start()


def _end_with_parent(folder: Path) -> None:
    """End this process and delete the folder if the parent is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


@lru_cache(maxsize=1)
def _load_shared(file: Path) -> Callable[[Any], Any]:
    # safe: written by the process that started this one, into a folder that only its user can open
    work: Callable[[Any], Any] = pickle.loads(file.read_bytes())  # noqa: S301
    return work


def _apply_shared(file: Path, item: Any) -> Any:
    return _load_shared(file)(item)


@contextmanager
def open_ray(n_workers: int | None = None) -> Iterator[Engine]:
    """The Ray cluster that this process or RAY_ADDRESS is connected to, else a temporary one on this machine.

    On a cluster its own CPUs decide how many tasks run at once, and all its machines must be able to read the stores.
    Work is plain tasks, one per item, which reduce where they run. Ray Data would move whole batches through its object
    store, which took five times as long for the same sums.
    """
    ray, n_local = import_ray(), worker_count(n_workers)
    was_connected = ray.is_initialized()
    try:
        if not was_connected:
            connect_ray(ray, n_local)
        n_cpus = int(ray.cluster_resources().get("CPU", 1))
        yield partial(_as_ray_tasks, ray, max(1, n_cpus) * AHEAD_PER_WORKER)
    finally:
        if not was_connected:
            ray.shutdown()


def import_ray() -> Any:
    """Import Ray with private settings; JustrightError if it is not installed."""
    # Ray reads these variables while it is imported. A library that reads private images sends no usage reports, and
    # our own cluster listens to this machine only: on Linux Ray replaces even 127.0.0.1 by an outer address unless
    # RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER is 0. Other users of this machine can reach 127.0.0.1 too, so the cluster
    # requires a token of our own: Ray would write its token to a file that all can read.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if "RAY_ADDRESS" not in os.environ and "ray" not in sys.modules:
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise JustrightError(
            "engine 'ray': Ray is not installed",
            expected="the extra that brings it",
            advice="pip install 'justright[ray]', or engine 'processes', which gives the same result",
        ) from error


def connect_ray(ray: Any, n_workers: int) -> None:
    """Connect to the cluster at RAY_ADDRESS, or start one with so many workers on this machine."""
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address := os.environ.get("RAY_ADDRESS"):
        try:
            ray.init(**quiet)
        except (OSError, RuntimeError, ValueError) as error:
            raise JustrightError(
                f"the Ray cluster at {address} cannot be reached: {error}",
                expected="the address of its head in RAY_ADDRESS",
                advice="if it asks for a token, RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH; without RAY_ADDRESS the "
                "work is done on this machine",
            ) from error
    else:
        ray.init(address="local", num_cpus=n_workers, include_dashboard=False, **quiet)


def _as_ray_tasks(
    ray: Any, n_ahead: int, work: Callable[[Item], Result], items: Iterable[Item]
) -> Generator[Result, None, None]:
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(_apply_on_one_thread)
    shared = ray.put(work)  # with its centroids or its network: sent to each machine once, not with each item
    try:
        yield from in_order(partial(task.remote, shared), ray.get, items, n_ahead)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, JustrightError):  # for the user: without the traceback of a worker
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        raise JustrightError(
            f"Ray lost a task: {error}", expected="workers that live and can read the stores", advice="fewer workers"
        ) from error


def _apply_on_one_thread(work: Callable[[Item], Result], item: Item) -> Result:
    with blas_threads(1):  # as in every other engine
        return work(item)
