"""Work as Ray tasks: an extra, `pip install 'justright[ray]'`.

Plain tasks, one an item, which reduce where they run. Ray Data moves whole batches through its object store, which
took five times as long for the same sums, and its blocks would have to carry our accumulators as opaque objects.
"""

from __future__ import annotations

import importlib
import logging
import os
import secrets
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from justright.engines.ordered_map import AHEAD, RETRIES, Engine, Item, Result, worker_count
from justright.utils.errors import JustrightError
from justright.utils.parallel import blas_threads, in_order


@contextmanager
def open_ray(n_workers: int | None = None) -> Iterator[Engine]:
    """The cluster that this process or RAY_ADDRESS is connected to, else one on this machine for the time being.

    On a cluster its own CPUs decide how many tasks run at once, and stores must lie where all its machines can read
    them.
    """
    ray, n_local = import_ray(), worker_count(n_workers)
    is_ours = not ray.is_initialized()
    try:
        if is_ours:
            _connect(ray, n_local)
        n_cpus = int(ray.cluster_resources().get("CPU", 1))
        yield partial(_as_tasks, ray, max(1, n_cpus) * AHEAD)
    finally:
        if is_ours:
            ray.shutdown()


def import_ray() -> Any:
    """The package, told how to behave; refused where it is not installed."""
    # Ray reads these while it is imported. A library that weighs private images reports to nobody unasked, and a
    # cluster for ourselves listens to this machine only: on Linux Ray turns even 127.0.0.1 into an outer address
    # unless it is told, by the name of the systems where that is the default, that no cluster is wanted. Other users
    # of this machine reach 127.0.0.1 too, so it takes a token, of our own: Ray's would be a file that all can read.
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


def _connect(ray: Any, n_workers: int) -> None:
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


def _as_tasks(
    ray: Any, n_ahead: int, work: Callable[[Item], Result], items: Iterable[Item]
) -> Generator[Result, None, None]:
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(_apply)
    shared = ray.put(work)  # with its centroids or its network: sent to each machine once, not with each item
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
    with blas_threads(1):  # as in every other engine
        return work(item)
