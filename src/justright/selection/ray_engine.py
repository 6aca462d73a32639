"""Passes of a selection as Ray tasks: an extra, `pip install 'justright[ray]'`.

Plain tasks, one a shard, which reduce where they run. Ray Data moves whole batches through its object store, which
took five times as long for the same sums, and its blocks would have to carry our accumulators as opaque objects.
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from justright.errors import JustrightError
from justright.parallel import in_order
from justright.selection.engines import AHEAD, Engine, Item, Result, one_blas_thread, worker_count


@contextmanager
def open_ray_tasks(n_workers: int | None = None) -> Iterator[Engine]:
    """The cluster that this process or RAY_ADDRESS is connected to, else one on this machine for the time being.

    On a cluster its own CPUs decide how many tasks run at once, and stores must lie where all its machines can read
    them.
    """
    ray, n_local = _import_ray(), worker_count(n_workers)
    is_ours = not ray.is_initialized()
    try:
        if is_ours:
            _connect(ray, n_local)
        n_cpus = int(ray.cluster_resources().get("CPU", 1))
        yield partial(_as_tasks, ray, max(1, n_cpus) * AHEAD)
    finally:
        if is_ours:
            ray.shutdown()


def _import_ray() -> Any:
    # Ray reads these while it is imported. A library that weighs private images reports to nobody unasked, and a
    # cluster for ourselves listens to this machine only: on Linux Ray turns even 127.0.0.1 into an outer address
    # unless it is told, by the name of the systems where that is the default, that no cluster is wanted.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if "RAY_ADDRESS" not in os.environ:
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise JustrightError(
            "engine 'ray': Ray is not installed",
            expected="the extra that brings it",
            advice="pip install 'justright[ray]', or engine 'processes', which gives the same weights",
        ) from error


def _connect(ray: Any, n_workers: int) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if "RAY_ADDRESS" in os.environ:
        ray.init(**quiet)
    else:
        ray.init(address="local", num_cpus=n_workers, include_dashboard=False, **quiet)


def _as_tasks(ray: Any, n_ahead: int, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    task = ray.remote(num_cpus=1)(_apply)
    shared = ray.put(work)  # with its centroids: sent to each machine once, not with each shard
    try:
        yield from in_order(partial(task.remote, shared), ray.get, items, n_ahead)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, JustrightError):  # says what to mend: no traceback of a worker before it
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        raise JustrightError(
            f"Ray lost a task: {error}", expected="workers that live and can read the stores", advice="fewer workers"
        ) from error


def _apply(work: Callable[[Item], Result], item: Item) -> Result:
    with one_blas_thread():  # as in every other engine
        return work(item)
