from __future__ import annotations

import numpy as np
import pytest

from justright.features.table import FeatureTable
from justright.runs.selection import Selection, load_selection, merge_tables, save_selection
from justright.selection import BetaSelector, BinsSelector, CuiSelector, UniformSelector, row_shards

TARGET = FeatureTable.of(1 + np.random.default_rng(1).normal(size=(30, 6)))
SELECTORS = {
    "beta": BetaSelector(domain="affine"),
    "image": BetaSelector(domain="affine", level="image", weight_range=(0.01, 1.0)),
    "bins": BinsSelector(n_clusters=4, discard=False),
    "cui": CuiSelector(n_clusters=4),
    "none": UniformSelector(),
}


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


def made(name, pool):
    selector = SELECTORS[name].fit_stream(pool, row_shards(TARGET.features))
    return Selection.of(name, selector, pool)


@pytest.mark.parametrize("name", SELECTORS)
def test_loaded_selection_equals_the_saved_one(pool, tmp_path, name):
    result = made(name, pool)
    save_selection(tmp_path / "w.parquet", result, TARGET)
    saved = load_selection(tmp_path / "w.parquet")
    assert saved.summary() == result.summary()
    assert saved.source_cells() == result.source_cells()
    assert saved.classes.equals(result.classes)
    assert saved.images.equals(result.images)
    assert saved.weights.found == result.weights.found
    assert saved.weights.columns.keys() == SELECTORS[name].weights_.columns.keys()
    assert np.array_equal(saved.weights.weight, SELECTORS[name].class_weight_)


def test_weighed_excludes_own_classes(pool, tmp_path):
    own = merge_tables([FeatureTable.of(np.ones((4, 6)), label=np.array([0, 0, 1, 1]), dataset=["own"] * 4)])
    result = made("beta", pool)
    save_selection(tmp_path / "w.parquet", result, TARGET, own)
    saved = load_selection(tmp_path / "w.parquet")
    assert saved.classes["label"].to_pylist() == list(range(9))
    assert saved.sample_weight[:4].tolist() == [1.0] * 4
    assert saved.weighed.source_cells() == result.source_cells()
    assert saved.weighed.summary() == result.summary()


def test_closest_class_has_highest_similarity_or_smallest_distance(pool):
    similar, distant = made("beta", pool), made("bins", pool)
    row, similarity = similar.source_rows()[-1], SELECTORS["beta"].class_similarity_
    assert (row["closest"], row["farthest"]) == (similarity.max(), similarity.min())
    row, distance = distant.source_rows()[-1], SELECTORS["bins"].class_distance_
    assert (row["closest"], row["farthest"]) == (distance.min(), distance.max())
    assert similar.source_columns()[6:] == ["most similarity", "median", "least"]
    assert distant.source_columns()[6:] == ["least distance", "median", "most"]


def test_uniform_selection_has_no_measure(pool):
    result = made("none", pool)
    assert result.weights.measure == ""
    assert result.source_rows()[0]["closest"] is None
    assert len(result.source_cells()[0]) == len(result.source_columns()) == 6
    assert result.summary() == "none: 7 of 7 classes and 31 of 31 images kept, mean weight 1"


def test_data_sets_are_summarized(pool):
    result = made("bins", pool)
    birds, _, everything = result.source_rows()
    is_kept = SELECTORS["bins"].class_weight_ > 0
    assert (birds["n_classes"], birds["n_images"]) == (4, 18)
    assert birds["n_kept_images"] == pool.counts[:4][is_kept[:4]].sum()
    assert birds["mean_weight"] == pytest.approx(birds["n_kept_images"] / 18)
    assert everything["n_kept_classes"] == is_kept.sum()
