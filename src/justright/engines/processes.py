"""Work in several processes of this machine; one that is killed is replaced, and what it had begun is given again."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from justright.engines.ordered_map import AHEAD, RETRIES, Engine, worker_count
from justright.utils.errors import JustrightError
from justright.utils.parallel import blas_threads, in_order, raise_gc_threshold


@contextmanager
def open_processes(n_workers: int | None = None) -> Iterator[Engine]:
    """Several processes on this machine.

    They are started anew rather than forked: a copy of a process with threads, as BLAS and torch have, can hang.
    """
    n = worker_count(n_workers)
    with TemporaryDirectory(prefix="justright-") as folder:
        pool = _Pool(n, Path(folder))
        try:
            yield pool.ordered_map
        finally:
            pool.executor.shutdown(cancel_futures=True)


@dataclass
class _Begun:
    """An item that a worker was given, and what will come of it."""

    item: Any
    future: Future[Any]


class _Pool:
    """Processes that are replaced when one of them is lost."""

    def __init__(self, n_workers: int, folder: Path):
        self.n_workers, self.folder, self.n_passes = n_workers, folder, 0
        self.executor = self._started()

    def _started(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.n_workers, context, _prepare_worker, (str(self.folder),))

    def ordered_map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Generator[Any, None, None]:
        """Apply work to items in several processes, and give the results in order."""
        file = self._shared(work)
        begun: deque[_Begun] = deque()

        def submit(item: Any) -> _Begun:
            begun.append(_Begun(item, self._submitted(file, item)))
            return begun[-1]

        def result(first: _Begun) -> Any:
            for _ in range(RETRIES):
                if isinstance(first.future.exception(), BrokenProcessPool):
                    self._give_again(begun, file)
            begun.popleft()
            return first.future.result()

        try:
            yield from in_order(submit, result, items, self.n_workers * AHEAD)
        except BrokenProcessPool as error:
            raise JustrightError(
                f"a worker process ended before its work was done, {1 + RETRIES} times",
                expected="workers with enough memory, started from a program that can be imported",
                advice="fewer workers; in a script, keep what it does under `if __name__ == '__main__':`",
            ) from error
        finally:
            for each in begun:
                each.future.cancel()

    def _shared(self, work: Callable[[Any], Any]) -> str:
        """The work in a file, which each worker reads once: a network need not go along with every item."""
        self.n_passes += 1
        file = self.folder / str(self.n_passes)
        try:
            file.write_bytes(pickle.dumps(work))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise JustrightError(
                f"what is to be done cannot be sent to another process: {error}",
                expected="images in files, and functions at the top of a module",
                advice="engine local",
            ) from error
        (self.folder / str(self.n_passes - 1)).unlink(missing_ok=True)
        return str(file)

    def _submitted(self, file: str, item: Any) -> Future[Any]:
        try:
            return self.executor.submit(_apply, file, item)
        except BrokenProcessPool as error:  # told where the result is asked for
            lost: Future[Any] = Future()
            lost.set_exception(error)
            return lost

    def _give_again(self, begun: Iterable[_Begun], file: str) -> None:
        """Replace all workers: when one is killed the others are stopped too, and nobody knows whose item it was."""
        self.executor.shutdown()
        self.executor = self._started()
        for each in begun:
            if isinstance(each.future.exception(), BrokenProcessPool):
                each.future = self._submitted(file, each.item)


def _prepare_worker(folder: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the parent decides
    warnings.simplefilter("ignore")  # those of decoders; what matters is an error
    raise_gc_threshold()
    blas_threads(1)
    threading.Thread(target=_end_with_parent, args=(folder,), daemon=True).start()


def _end_with_parent(folder: str) -> None:
    """Leave nothing behind where the parent was killed: neither this process nor the folder."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


@lru_cache(maxsize=1)
def _work_in(file: str) -> Callable[[Any], Any]:
    # written a moment ago by the process that started this one, into a folder that only its user can open
    work: Callable[[Any], Any] = pickle.loads(Path(file).read_bytes())  # noqa: S301
    return work


def _apply(file: str, item: Any) -> Any:
    return _work_in(file)(item)
