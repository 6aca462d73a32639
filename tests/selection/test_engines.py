from __future__ import annotations

import importlib.util
import os
from operator import neg

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from justright.errors import DataError, DegenerateError, JustrightError
from justright.features.table import FeatureTable
from justright.geometry import ClassSums
from justright.selection import (
    ENGINES,
    BetaSelector,
    BinsSelector,
    CuiSelector,
    UniformSelector,
    row_shards,
)
from justright.selection.engines import in_process, merge_all, worker_count

SELECTORS = [
    UniformSelector(),
    BetaSelector(domain="affine"),
    BetaSelector(domain="affine", reduction="median"),
    BetaSelector(domain="affine", level="image"),
    BinsSelector(n_clusters=5, discard=False),
    BinsSelector(n_clusters=5, discard=False, metric="l2"),
    CuiSelector(n_clusters=5),
]
ROWS = 13  # of a shard, so that the last one is shorter


needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'justright[ray]'"
)


@pytest.fixture(scope="module", params=["local", "processes", pytest.param("ray", marks=needs_ray)])
def engine(request):
    with ENGINES[request.param](2) as opened:
        yield opened


@pytest.fixture
def stores(cloud, tmp_path):
    """Pool and target as feature stores on disk."""
    pool = FeatureTable.of(cloud.pool.astype(np.float16), label=cloud.labels).write(tmp_path / "pool")
    target = FeatureTable.of(cloud.target.astype(np.float32)).write(tmp_path / "target")
    return pool, target


def shards_of(pool, target):
    labeled = list(zip(row_shards(pool.features, ROWS), row_shards(pool.labels, ROWS), strict=True))
    return labeled, row_shards(target.features, ROWS)


def learned(selector):
    return {name: value for name, value in vars(selector).items() if isinstance(value, np.ndarray | float)}


@pytest.mark.parametrize("selector", SELECTORS, ids=repr)
def test_every_engine_gives_the_same_bytes(engine, stores, selector):
    here = learned(selector.fit_stream(*shards_of(*stores)))
    there = learned(selector.fit_stream(*shards_of(*stores), engine=engine))
    assert here.keys() == there.keys()
    assert [name for name in here if np.asarray(here[name]).tobytes() != np.asarray(there[name]).tobytes()] == []


def test_products_that_blas_would_share_among_threads_give_the_same_bytes_too(engine):
    rng = np.random.default_rng(0)
    labels = np.arange(4000) % 200
    pool = 1 + rng.normal(size=(200, 96))[labels].astype(np.float32)
    target = 1 + rng.normal(size=(6000, 96)).astype(np.float32)
    shards = list(zip(row_shards(pool, 1000), row_shards(labels, 1000), strict=True)), row_shards(target, 1500)
    for reduction in ("min", "median"):
        selector = BetaSelector(reduction=reduction, domain="affine")
        with ENGINES["local"](1) as alone:
            expected = selector.fit_stream(*shards, engine=alone).class_weight_
        assert np.array_equal(selector.fit_stream(*shards, engine=engine).class_weight_, expected)
        assert selector.fit(pool, labels, target).class_weight_ == pytest.approx(expected, abs=1e-5)


def test_clusters_that_are_given_reach_their_shards(engine, stores, cloud):
    selector = CuiSelector()
    here = learned(selector.fit_stream(*shards_of(*stores), cloud.clusters))
    there = learned(selector.fit_stream(*shards_of(*stores), cloud.clusters, engine=engine))
    assert np.array_equal(here["class_similarity_"], there["class_similarity_"])
    with pytest.raises(DataError, match="59 target_clusters for 60 target images"):
        selector.fit_stream(*shards_of(*stores), cloud.clusters[1:], engine=engine)


def test_shards_in_memory_work_as_well_as_files(engine, cloud):
    there = BetaSelector().fit_stream([(cloud.pool, cloud.labels)], iter([cloud.target]), engine=engine)
    assert np.array_equal(there.class_weight_, BetaSelector().fit(cloud.pool, cloud.labels, cloud.target).class_weight_)


def test_an_error_of_a_worker_says_what_it_would_say_here(engine, cloud):
    cloud.target[17] = np.nan
    with pytest.raises(DegenerateError) as error:
        BetaSelector().fit_stream([(cloud.pool, cloud.labels)], row_shards(cloud.target, 10), engine=engine)
    assert str(error.value).startswith("target shard 1: NaN or infinite values in 1 of 10 rows (row 7)")
    assert error.value.expected == "finite numbers"


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

    before = n_threads()
    with ENGINES["local"](2) as engine:
        assert list(engine(lambda _: n_threads(), range(3))) == [[1] * len(before)] * 3
        assert n_threads() == before
        with pytest.raises(ZeroDivisionError):
            list(engine((1).__truediv__, [1, 0]))
        assert n_threads() == before


def test_nothing_merges_to_an_empty_accumulator():
    assert len(merge_all(ClassSums(), ClassSums().update, [], in_process).classes) == 0


def test_a_worker_that_dies_is_reported():
    with ENGINES["processes"](1) as engine, pytest.raises(JustrightError, match="a worker process ended") as error:
        list(engine(os._exit, [1]))
    assert "fewer workers" in error.value.advice


@pytest.mark.parametrize("name", ["local", "processes", pytest.param("ray", marks=needs_ray)])
def test_there_is_at_least_one_worker(name):
    assert worker_count(3) == 3
    assert worker_count(None) >= 1
    with pytest.raises(JustrightError, match="0 workers"), ENGINES[name](0):
        pass
