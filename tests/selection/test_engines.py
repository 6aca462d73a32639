from __future__ import annotations

import numpy as np
import pytest
from tests.deadly_work import DeadlyRows
from tests.lost_workers import EVERY_ENGINE, FAR_ENGINES

from justright.features.table import FeatureTable
from justright.selection import (
    BetaSelector,
    BinsSelector,
    CuiSelector,
    UniformSelector,
)
from justright.utils.errors import DataError, DegenerateError
from justright.utils.file_rows import row_shards
from justright.utils.parallel import ENGINES

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


@pytest.fixture(scope="module", params=EVERY_ENGINE)
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


def test_engines_agree_on_large_products(engine):
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


def test_given_clusters_are_split_by_shards(engine, stores, cloud):
    selector = CuiSelector()
    here = learned(selector.fit_stream(*shards_of(*stores), cloud.clusters))
    there = learned(selector.fit_stream(*shards_of(*stores), cloud.clusters, engine=engine))
    assert np.array_equal(here["class_similarity_"], there["class_similarity_"])
    with pytest.raises(DataError, match="59 target_clusters for 60 target images"):
        selector.fit_stream(*shards_of(*stores), cloud.clusters[1:], engine=engine)


def test_shards_in_memory_work_as_well_as_files(engine, cloud):
    there = BetaSelector().fit_stream([(cloud.pool, cloud.labels)], iter([cloud.target]), engine=engine)
    assert np.array_equal(there.class_weight_, BetaSelector().fit(cloud.pool, cloud.labels, cloud.target).class_weight_)


def test_worker_errors_keep_their_text(engine, cloud):
    cloud.target[17] = np.nan
    with pytest.raises(DegenerateError) as error:
        BetaSelector().fit_stream([(cloud.pool, cloud.labels)], row_shards(cloud.target, 10), engine=engine)
    assert str(error.value).startswith("target shard 1: NaN or infinite values in 1 of 10 rows (row 7)")
    assert error.value.expected == "finite numbers"


@pytest.mark.parametrize("name", FAR_ENGINES)
def test_killed_worker_changes_no_byte(name, stores, tmp_path):
    selector = BinsSelector(n_clusters=5, discard=False)
    labeled, target = shards_of(*stores)
    here = learned(selector.fit_stream(labeled, target))
    labeled[2] = DeadlyRows(labeled[2][0], tmp_path / "first"), labeled[2][1]
    with ENGINES[name](2) as opened:
        there = learned(selector.fit_stream(labeled, target, engine=opened))
    assert (tmp_path / "first").exists(), "nobody was killed"
    assert [each for each in here if np.asarray(here[each]).tobytes() != np.asarray(there[each]).tobytes()] == []
