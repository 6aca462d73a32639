from __future__ import annotations

import json

import numpy as np
import pytest

from justright.features.table import FeatureTable
from justright.runs.feature_pool import TargetBlocks, merge_tables
from justright.runs.selection_result import SelectionResult
from justright.selection import BetaSelector, BinsSelector, UniformSelector


@pytest.fixture
def pool():
    rng = np.random.default_rng(0)
    tables = []
    for name, n in (("birds", 4), ("pets", 3)):
        labels = np.repeat(np.arange(n), [3, *[5] * (n - 1)])
        tables.append(
            FeatureTable.of(1 + rng.normal(size=(len(labels), 6)), label=labels, dataset=[name] * len(labels))
        )
    return merge_tables(tables)


TARGET = TargetBlocks(FeatureTable.of(1 + np.random.default_rng(1).normal(size=(30, 6))))


def test_each_data_set_is_summed_up(pool):
    selector = BinsSelector(n_clusters=4, discard=False).fit_stream(pool, TARGET)
    result = SelectionResult.of("bins", selector, pool)
    birds, _, everything = result.source_rows()
    is_kept, distance = selector.class_weight_ > 0, selector.class_distance_
    assert (birds.n_classes, birds.n_images) == (4, 18)
    assert birds.n_kept_images == pool.counts[:4][is_kept[:4]].sum()
    assert birds.mean_weight == pytest.approx(birds.n_kept_images / 18)
    assert (birds.closest, birds.farthest) == (distance[:4].min(), distance[:4].max())
    assert everything.n_kept_classes == is_kept.sum()
    assert len(result.source_cells()[0]) == len(result.source_columns()) == 9
    assert json.loads(json.dumps(result.to_json()))["sources"][2]["dataset"] == "all"


def test_the_most_similar_is_the_closest(pool):
    selector = BetaSelector(domain="affine").fit_stream(pool, TARGET)
    row = SelectionResult.of("beta", selector, pool).source_rows()[-1]
    assert (row.closest, row.farthest) == (selector.class_similarity_.max(), selector.class_similarity_.min())


def test_no_selection_compares_nothing(pool):
    result = SelectionResult.of("none", UniformSelector().fit_stream(pool, TARGET), pool)
    assert result.measure == ""
    assert result.source_rows()[0].closest is None
    assert len(result.source_cells()[0]) == 6
    assert result.summary() == "none: 7 of 7 classes and 31 of 31 images kept, mean weight 1"
