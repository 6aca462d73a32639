"""Ordered maps: the same results in the same order wherever the work is done."""

from __future__ import annotations

from operator import neg

import pytest
from tests.engines.deadly_work import DeadlyDouble
from tests.engines.lost_workers import EVERY_ENGINE, FAR_ENGINES
from threadpoolctl import threadpool_info, threadpool_limits

from justright.engines import ENGINES, in_process, threads
from justright.engines.ordered_map import worker_count
from justright.utils.errors import JustrightError


@pytest.fixture(scope="module", params=EVERY_ENGINE)
def engine(request):
    with ENGINES[request.param](2) as opened:
        yield opened


def test_an_error_that_is_a_bug_keeps_its_kind(engine):
    with pytest.raises(ZeroDivisionError):
        list(engine((1).__truediv__, [1, 0]))


def test_results_come_in_order_and_an_engine_serves_again(engine):
    assert list(engine(neg, range(20))) == [-n for n in range(20)]
    assert list(engine(neg, [])) == []


def test_one_shard_is_in_memory_at_a_time_by_default():
    events = []
    shards = (events.append(f"read {n}") or n for n in range(3))
    list(in_process(lambda n: events.append(f"done {n}"), shards))
    assert events == ["read 0", "done 0", "read 1", "done 1", "read 2", "done 2"]


def test_blas_has_its_threads_back_after_a_pass_even_one_that_failed():
    def n_threads() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    with threadpool_limits(2, "blas"), ENGINES["local"](2) as engine:
        before = n_threads()
        assert list(engine(lambda _: n_threads(), range(3))) == [[1] * len(before)] * 3
        assert n_threads() == before
        with pytest.raises(ZeroDivisionError):
            list(engine((1).__truediv__, [1, 0]))
        assert n_threads() == before


@pytest.mark.parametrize("name", EVERY_ENGINE)
def test_there_is_at_least_one_worker(name):
    assert worker_count(3) == 3
    assert worker_count(None) >= 1
    with pytest.raises(JustrightError, match="0 workers"), ENGINES[name](0):
        pass


def test_threads_may_be_none():
    assert list(threads(0)(neg, range(3))) == list(threads(2)(neg, range(3))) == [0, -1, -2]


@pytest.mark.parametrize("name", FAR_ENGINES)
def test_a_worker_that_is_killed_is_replaced_and_its_items_are_given_again(name, tmp_path):
    with ENGINES[name](2) as engine:
        assert list(engine(DeadlyDouble(3, tmp_path / "mark"), range(12))) == list(range(0, 24, 2))
        assert (tmp_path / "mark").exists(), "nobody was killed"
        assert list(engine(neg, range(3))) == [0, -1, -2]
