"""Parallel work: the same results in the same order wherever the work is done."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from operator import neg
from types import ModuleType

import pytest
import threadpoolctl
from tests.deadly_work import DeadlyDouble
from tests.lost_workers import EVERY_ENGINE, FAR_ENGINES, needs_ray

from justright.utils.errors import JustrightError
from justright.utils.parallel import (
    ENGINES,
    blas_threads,
    connect_ray,
    in_order,
    in_process,
    in_threads,
    raise_gc_threshold,
    threads,
    worker_count,
)


def test_results_keep_the_order_and_few_items_are_submitted_ahead():
    started, most = [], 0

    def submit(item):
        nonlocal most
        started.append(item)
        most = max(most, len(started))
        return item

    def result(item):
        started.remove(item)
        return 10 * item

    assert list(in_order(submit, result, range(20), 3)) == [10 * item for item in range(20)]
    assert most == 3


@pytest.mark.parametrize("n_threads", [0, 1, 3])
def test_threads_give_results_in_the_order_of_the_items(n_threads):
    def work(item):
        time.sleep(0.01 * (item % 3 == 0))  # every third is overtaken
        return item**2

    assert list(in_threads(work, range(10), n_threads)) == [item**2 for item in range(10)]


def test_threads_read_few_items_ahead():
    taken = []
    results = in_threads(str, (taken.append(item) or item for item in range(100)), 2, n_ahead=3)
    next(results)
    assert len(taken) <= 4
    results.close()


def test_closing_early_leaves_no_thread_behind():
    before = threading.active_count()
    results = in_threads(str, range(100), 4)
    next(results)
    results.close()
    assert threading.active_count() == before


def test_gc_threshold_is_raised():
    before = gc.get_threshold()
    try:
        gc.set_threshold(700)
        raise_gc_threshold()
        assert 700 < gc.get_threshold()[0] < 100_000
    finally:
        gc.set_threshold(*before)


def n_blas_threads():
    """The numbers of threads of the loaded BLAS libraries."""
    return {library["num_threads"] for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"}


def n_blas_threads_of(item):
    return n_blas_threads()


def test_workers_use_one_blas_thread(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    with ENGINES["processes"](1) as engine:
        assert set(*engine(n_blas_threads_of, [0])) == {1}


def test_blas_threads_are_limited_and_restored():
    before = n_blas_threads()
    with blas_threads(3):
        assert n_blas_threads() == {3}
        with blas_threads(1):
            assert n_blas_threads() == {1}
        assert n_blas_threads() == {3}
    assert n_blas_threads() == before


def test_blas_libraries_are_searched_only_after_an_import(monkeypatch):
    searches = []

    class Controller(threadpoolctl.ThreadpoolController):
        def __init__(self):
            searches.append(1)
            super().__init__()

    blas_threads(1).__exit__(None, None, None)
    monkeypatch.setattr(threadpoolctl, "ThreadpoolController", Controller)
    with blas_threads(2), blas_threads(1):
        assert searches == []
    monkeypatch.setitem(sys.modules, "imported_later", ModuleType("imported_later"))
    for _ in range(2):
        with blas_threads(1):
            assert searches == [1]


@pytest.fixture(scope="module", params=EVERY_ENGINE)
def engine(request):
    with ENGINES[request.param](2) as opened:
        yield opened


def test_error_keeps_its_type(engine):
    with pytest.raises(ZeroDivisionError):
        list(engine((1).__truediv__, [1, 0]))


def test_engine_yields_results_in_order_and_can_be_reused(engine):
    assert list(engine(neg, range(20))) == [-n for n in range(20)]
    assert list(engine(neg, [])) == []


def test_in_process_reads_one_item_at_a_time():
    events = []
    shards = (events.append(f"read {n}") or n for n in range(3))
    list(in_process(lambda n: events.append(f"done {n}"), shards))
    assert events == ["read 0", "done 0", "read 1", "done 1", "read 2", "done 2"]


def test_local_engine_restores_blas_threads_after_an_error():
    with threadpoolctl.threadpool_limits(2, "blas"), ENGINES["local"](2) as engine:
        before = n_blas_threads()
        assert list(engine(lambda _: n_blas_threads(), range(3))) == [{1}] * 3
        assert n_blas_threads() == before
        with pytest.raises(ZeroDivisionError):
            list(engine((1).__truediv__, [1, 0]))
        assert n_blas_threads() == before


@pytest.mark.parametrize("name", EVERY_ENGINE)
def test_zero_workers_are_rejected(name):
    assert worker_count(3) == 3
    assert worker_count(None) >= 1
    with pytest.raises(JustrightError, match="0 workers"), ENGINES[name](0):
        pass


def test_zero_threads_use_the_calling_thread():
    assert list(threads(0)(neg, range(3))) == list(threads(2)(neg, range(3))) == [0, -1, -2]


@pytest.mark.parametrize("name", FAR_ENGINES)
def test_killed_worker_is_replaced_and_its_items_are_retried(name, tmp_path):
    with ENGINES[name](2) as engine:
        assert list(engine(DeadlyDouble(3, tmp_path / "mark"), range(12))) == list(range(0, 24, 2))
        assert (tmp_path / "mark").exists(), "no worker was killed"
        assert list(engine(neg, range(3))) == [0, -1, -2]


def test_worker_that_dies_every_time_is_an_error():
    with ENGINES["processes"](1) as engine, pytest.raises(JustrightError, match="a worker process ended") as error:
        list(engine(os._exit, [1]))
    assert "4 times" in error.value.problem
    assert "fewer workers" in error.value.advice


def test_work_that_cannot_be_pickled_is_rejected():
    with ENGINES["processes"](1) as engine, pytest.raises(JustrightError, match="cannot be sent") as error:
        list(engine(lambda item: item, [1]))
    assert error.value.advice == "engine local"


NOT_IMPORTABLE = """
from functools import partial
from justright.utils.parallel import ENGINES
with ENGINES["processes"](1) as engine:
    list(engine(partial(max, bytes(1 << 20)), [b""]))
"""


def test_worker_that_cannot_start_is_an_error_although_the_work_is_large(tmp_path):
    """A process that was sent more than a pipe holds, and ends before it reads, would be waited for without an end."""
    script = tmp_path / "script.py"
    script.write_text(NOT_IMPORTABLE)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert "a worker process ended before its work was done" in done.stderr


KILLED = """
import time
from justright.utils.parallel import ENGINES
with ENGINES["processes"](1) as engine:
    results = engine(eval, ["__import__('os').getpid()", "1"])
    print(next(results), flush=True)
    time.sleep(600)
"""


def test_workers_and_files_end_with_a_killed_parent(tmp_path):
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", KILLED]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        worker = int(process.stdout.readline())
        assert list(tmp_path.iterdir()) != []
        process.kill()
    end = time.monotonic() + 60
    while list(tmp_path.iterdir()) or os.path.exists(f"/proc/{worker}/exe"):
        assert time.monotonic() < end, "the worker or its folder is still there"
        time.sleep(0.05)


def test_missing_ray_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(JustrightError, match="Ray is not installed") as error, ENGINES["ray"](None):
        pass
    assert "pip install 'justright[ray]'" in error.value.advice


OWN_CLUSTER = """
from justright.utils.parallel import ENGINES
with ENGINES["ray"](1):
    import ray
    print([node["NodeManagerAddress"] for node in ray.nodes()])
    from ray._raylet import AuthenticationMode, get_authentication_mode
    print(get_authentication_mode() == AuthenticationMode.TOKEN)
print(ray.is_initialized())
"""


@needs_ray
def test_own_ray_cluster_is_private_and_ends_with_the_block(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment["HOME"] = str(tmp_path)
    out = subprocess.run(
        [sys.executable, "-W", "error", "-c", OWN_CLUSTER], capture_output=True, text=True, env=environment
    )
    assert (out.stdout, out.stderr) == ("['127.0.0.1']\nTrue\nFalse\n", "")
    assert not (tmp_path / ".ray").exists()  # where Ray would leave a token that all users of the machine can read


def test_unreachable_cluster_is_named(monkeypatch):
    class NoRay:
        def init(self, **options):
            raise ConnectionError("nobody there")

    monkeypatch.setenv("RAY_ADDRESS", "far:6379")
    with pytest.raises(JustrightError, match="cluster at far:6379 cannot be reached: nobody there") as error:
        connect_ray(NoRay(), 1)
    assert "RAY_AUTH_MODE=token" in error.value.advice
