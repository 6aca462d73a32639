"""The pool of a selection, its weights, and their files."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from justright.data.pool import Origin
from justright.features.store import StoreMismatchError
from justright.features.table import FeatureTable
from justright.runs.selection import (
    CLASS_COLUMNS,
    KEPT,
    KEY,
    Selection,
    class_file,
    load_selection,
    merge_tables,
    save_selection,
    stability_of,
)
from justright.selection import BetaSelector, BinsSelector, CuiSelector, UniformSelector, row_shards
from justright.utils.errors import DataError

TARGET = FeatureTable.of(1 + np.random.default_rng(1).normal(size=(30, 6)))
BLOCKS = row_shards(TARGET.features)
SELECTORS = {
    "beta": BetaSelector(domain="affine", threshold=0.5),
    "image": BetaSelector(domain="affine", level="image", weight_range=(0.01, 1.0)),
    "bins": BinsSelector(n_clusters=4, discard=False),
    "cui": CuiSelector(n_clusters=4),
    "none": UniformSelector(),
}
OWN = FeatureTable.of(np.ones((4, 6)), label=np.array([0, 0, 1, 1]), dataset=["own"] * 4)


def drawn_pool():
    rng = np.random.default_rng(0)
    tables = []
    for name, n in (("birds", 4), ("pets", 3)):
        labels = np.repeat(np.arange(n), [3, *[5] * (n - 1)])
        tables.append(
            FeatureTable.of(1 + rng.normal(size=(len(labels), 6)), label=labels, dataset=[name] * len(labels))
        )
    return merge_tables(tables)


@pytest.fixture
def pool():
    return drawn_pool()


def made(name, pool):
    return Selection.of(name, SELECTORS[name].fit_stream(pool, BLOCKS), pool)


def table(labels, names, dataset, seed=0, dim=3):
    x = np.random.default_rng(seed).normal(size=(len(labels), dim)).astype(np.float32)
    columns = {"label": np.array(labels), "class_name": [names[label] for label in labels]}
    return FeatureTable.of(x, **columns, dataset=dataset if isinstance(dataset, list) else [dataset] * len(labels))


def test_labels_follow_the_tables_then_their_own_labels(tmp_path):
    birds = table([7, 2, 7], {7: "wren", 2: "gull"}, "birds").write(tmp_path / "birds")
    pets = table([1, 0], {1: "dog", 0: None}, "pets", seed=1)
    pool = merge_tables([birds, pets])
    assert pool.class_names == ["birds/gull", "birds/wren", "pets/0", "pets/dog"]
    assert pool.labels.tolist() == [1, 0, 1, 3, 2]
    assert pool.origins[1] == Origin("birds", 7, "wren")
    assert pool.counts.tolist() == [1, 2, 1, 1]
    shards = list(pool)
    assert np.array_equal(np.concatenate([features for features, _ in shards]), pool.features)
    assert np.array_equal(np.concatenate([labels for _, labels in shards]), pool.labels)
    assert pool.index()["class_name"].to_pylist()[3] == "pets/dog"


def test_one_table_may_hold_several_data_sets_with_the_same_labels():
    both = table([0, 0, 1], {0: "a", 1: "b"}, ["x", "y", "x"])
    pool = merge_tables([both])
    assert pool.class_names == ["x/a", "x/b", "y/a"]
    assert pool.labels.tolist() == [0, 2, 1]


def test_invalid_pools_raise():
    birds = table([0, 1], {0: "a", 1: "b"}, "birds")
    with pytest.raises(DataError, match="called 'birds'"):
        merge_tables([birds, birds])
    with pytest.raises(DataError, match="have no label"):
        merge_tables([birds.without_labels()])
    with pytest.raises(DataError, match="empty"):
        merge_tables([])
    patches = FeatureTable.of(np.ones((2, 4, 3), np.float32), label=np.array([0, 1]))
    with pytest.raises(DataError, match="4 x 3 numbers per image"):
        merge_tables([patches])
    other = table([0, 1], {0: "a", 1: "b"}, "pets")
    vars(other.header)["backbone"] = {"name": "another"}
    with pytest.raises(StoreMismatchError, match=r"backbone\.name"):
        merge_tables([birds, other])


def test_pooled_class_names_get_no_second_prefix():
    assert merge_tables([table([0], {0: "birds/wren"}, "birds")]).class_names == ["birds/wren"]


def test_selection_has_weights_reasons_and_columns_of_the_selector(pool):
    selector = BinsSelector(n_clusters=4, discard=False).fit_stream(pool, BLOCKS)
    stable = stability_of(selector, pool, TARGET, 3, seed=0)
    result = Selection.of("bins", selector, pool, stable)
    assert result.classes.column_names == [*CLASS_COLUMNS, "distance", "bin", "kept_share", "weight_std"]
    assert np.array_equal(result.classes["bin"].to_numpy(), selector.bin_)
    assert np.array_equal(result.sample_weight, selector.sample_weight(pool.labels))
    assert result.images["reason"].to_pylist()[4] == selector.reason_[1]
    assert result.about == {"selector": "bins", "params": selector.get_params(), "threshold": selector.threshold_}


def test_images_weighed_one_by_one_have_their_own_reasons(pool):
    selector = BetaSelector(domain="affine", level="image").fit_stream(pool, BLOCKS)
    result = Selection.of("beta", selector, pool)
    assert np.array_equal(result.sample_weight, selector.image_weight_)
    first = f"similarity {selector.image_similarity_[0]:.2f} weighs {selector.image_weight_[0]:.2f}"
    assert result.images["reason"][0].as_py() == first


def test_selection_is_json(pool):
    selector = BetaSelector(domain="affine").fit_stream(pool, BLOCKS)
    value = json.loads(json.dumps(Selection.of("beta", selector, pool).to_json()))
    assert [row["dataset"] for row in value["sources"]] == ["birds", "pets", "all"]
    assert (value["params"]["domain"], value["stability"], len(value["classes"])) == ("affine", None, 7)


def test_stability_is_computed_on_request(pool):
    selector = BetaSelector(domain="affine").fit_stream(pool, BLOCKS)
    assert stability_of(selector, pool, TARGET, None, seed=0) is None
    assert stability_of(selector, pool, TARGET, 2, seed=0).n_resamples == 2


def test_only_a_computed_threshold_is_written(pool, tmp_path):
    """The threshold of Beta is a parameter; Cui and none have no threshold."""
    for name in SELECTORS:
        save_selection(tmp_path / "w.parquet", made(name, pool), TARGET)
        about = load_selection(tmp_path / "w.parquet").about
        if name == "bins":
            assert about["threshold"] == SELECTORS["bins"].split_threshold_.mean()
        else:
            assert "threshold" not in about


def test_mixed_up_files_raise(pool, tmp_path):
    for name in ("beta", "bins"):
        save_selection(tmp_path / f"{name}.parquet", made(name, pool), TARGET)
    for file in ("bins.classes.parquet", "beta.parquet"):
        good = class_file(tmp_path / "beta.parquet").read_bytes()
        class_file(tmp_path / "beta.parquet").write_bytes((tmp_path / file).read_bytes())
        with pytest.raises(DataError, match=r"beta\.classes\.parquet"):
            load_selection(tmp_path / "beta.parquet")
        class_file(tmp_path / "beta.parquet").write_bytes(good)
    load_selection(tmp_path / "beta.parquet")


def test_same_selection_gives_same_bytes(pool, tmp_path):
    files = [tmp_path / name / "w.parquet" for name in ("one", "two")]
    for file in files:
        file.parent.mkdir()
        assert save_selection(file, made("bins", pool), TARGET) == class_file(file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert class_file(files[0]).read_bytes() == class_file(files[1]).read_bytes()
    about = [json.loads(pq.read_schema(file).metadata[KEY]) for file in (files[0], class_file(files[0]))]
    assert about[0] == about[1]
    assert list(about[0]) == [
        *("format", "selector", "params", "kept_classes", "kept_images", "backbone", "pool", "target", "threshold")
    ]


def test_own_classes_come_first_without_a_distance(pool, tmp_path):
    save_selection(tmp_path / "w.parquet", made("bins", pool), TARGET, merge_tables([OWN]))
    saved = load_selection(tmp_path / "w.parquet")
    assert saved.classes["reason"].to_pylist()[:2] == [KEPT, KEPT]
    assert saved.classes["distance"].to_pylist()[:2] == [None, None]
    assert saved.images["reason"].to_pylist()[:4] == [KEPT] * 4
    assert saved.images["label"].to_pylist() == [0, 0, 1, 1, *(pool.labels + 2)]
    assert (saved.about["kept_classes"], saved.about["kept_images"]) == (2, 4)


def test_other_format_raises(pool, tmp_path):
    path = tmp_path / "w.parquet"
    save_selection(path, made("none", pool), TARGET)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({KEY: json.dumps({"format": "other"}).encode()}), path)
    with pytest.raises(DataError, match="does not hold weights of this version: format 'other'"):
        load_selection(path)
    with pytest.raises(DataError, match="does not hold weights"):
        load_selection(tmp_path / "nothing.parquet")


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
    result = made("beta", pool)
    save_selection(tmp_path / "w.parquet", result, TARGET, merge_tables([OWN]))
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
