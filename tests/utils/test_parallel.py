from __future__ import annotations

import gc
import sys
import threading
import time
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
import threadpoolctl

from justright.utils.parallel import blas_threads, in_blocks, in_order, in_threads, n_cores, raise_gc_threshold


def test_results_keep_the_order_and_no_more_is_begun_than_allowed():
    begun, most = [], 0

    def submit(item):
        nonlocal most
        begun.append(item)
        most = max(most, len(begun))
        return item

    def result(item):
        begun.remove(item)
        return 10 * item

    assert list(in_order(submit, result, range(20), 3)) == [10 * item for item in range(20)]
    assert most == 3


@pytest.mark.parametrize("n_threads", [0, 1, 3])
def test_threads_give_results_in_the_order_of_the_items(n_threads):
    def work(item):
        time.sleep(0.01 * (item % 3 == 0))  # every third is overtaken
        return item**2

    assert list(in_threads(work, range(10), n_threads)) == [item**2 for item in range(10)]


def test_threads_do_not_take_more_items_than_they_may():
    taken = []
    results = in_threads(str, (taken.append(item) or item for item in range(100)), 2, n_ahead=3)
    next(results)
    assert len(taken) <= 4
    results.close()


def test_whoever_stops_early_leaves_no_thread_behind():
    before = threading.active_count()
    results = in_threads(str, range(100), 4)
    next(results)
    results.close()
    assert threading.active_count() == before


def test_there_is_at_least_one_core():
    assert n_cores() >= 1


def test_garbage_is_looked_for_less_often_but_is():
    before = gc.get_threshold()
    try:
        gc.set_threshold(700)
        raise_gc_threshold()
        assert 700 < gc.get_threshold()[0] < 100_000
    finally:
        gc.set_threshold(*before)


def n_blas_threads():
    return {library["num_threads"] for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"}


def test_blas_computes_with_as_many_threads_as_asked_and_then_as_before():
    before = n_blas_threads()
    with blas_threads(3):
        assert n_blas_threads() == {3}
        with blas_threads(1):
            assert n_blas_threads() == {1}
        assert n_blas_threads() == {3}
    assert n_blas_threads() == before


def test_libraries_of_blas_are_looked_for_again_only_after_an_import(monkeypatch):
    looked = []

    class Controller(threadpoolctl.ThreadpoolController):
        def __init__(self):
            looked.append(1)
            super().__init__()

    blas_threads(1).__exit__(None, None, None)
    monkeypatch.setattr(threadpoolctl, "ThreadpoolController", Controller)
    with blas_threads(2), blas_threads(1):
        assert looked == []
    monkeypatch.setitem(sys.modules, "imported_later", ModuleType("imported_later"))
    for _ in range(2):
        with blas_threads(1):
            assert looked == [1]


def test_an_array_and_a_column_come_as_plain_lists_block_by_block():
    assert list(in_blocks(np.arange(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(in_blocks(pa.chunked_array([["a"], ["b", "c"]]), 2)) == [["a", "b"], ["c"]]
    assert list(in_blocks(np.arange(0))) == []
