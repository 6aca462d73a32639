from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

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


@pytest.fixture
def pool():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(5), 4)
    table = FeatureTable.of(1 + rng.normal(size=(20, 6)), label=labels, dataset=["birds"] * 12 + ["pets"] * 8)
    return merge_tables([table])


TARGET = FeatureTable.of(1 + np.random.default_rng(1).normal(size=(30, 6)))
BLOCKS = row_shards(TARGET.features)


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
    assert (value["params"]["domain"], value["stability"], len(value["classes"])) == ("affine", None, 5)


def test_stability_is_computed_on_request(pool):
    selector = BetaSelector(domain="affine").fit_stream(pool, BLOCKS)
    assert stability_of(selector, pool, TARGET, None, seed=0) is None
    assert stability_of(selector, pool, TARGET, 2, seed=0).n_resamples == 2


SELECTORS = {
    "beta": BetaSelector(domain="affine", threshold=0.5),
    "bins": BinsSelector(n_clusters=4, discard=False),
    "cui": CuiSelector(n_clusters=4),
    "none": UniformSelector(),
}


def made(name):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(5), 4)
    pool = merge_tables([FeatureTable.of(1 + rng.normal(size=(20, 6)), label=labels, dataset=["birds"] * 20)])
    return Selection.of(name, SELECTORS[name].fit_stream(pool, row_shards(TARGET.features)), pool)


def test_only_a_computed_threshold_is_written(tmp_path):
    """The threshold of Beta is a parameter; Cui and none have none."""
    for name in SELECTORS:
        result = made(name)
        save_selection(tmp_path / "w.parquet", result, TARGET)
        about = load_selection(tmp_path / "w.parquet").about
        if name == "bins":
            assert about["threshold"] == SELECTORS["bins"].split_threshold_.mean()
        else:
            assert "threshold" not in about


def test_mixed_up_files_raise(tmp_path):
    for name in ("beta", "bins"):
        save_selection(tmp_path / f"{name}.parquet", made(name), TARGET)
    for file in ("bins.classes.parquet", "beta.parquet"):
        good = class_file(tmp_path / "beta.parquet").read_bytes()
        class_file(tmp_path / "beta.parquet").write_bytes((tmp_path / file).read_bytes())
        with pytest.raises(DataError, match=r"beta\.classes\.parquet"):
            load_selection(tmp_path / "beta.parquet")
        class_file(tmp_path / "beta.parquet").write_bytes(good)
    load_selection(tmp_path / "beta.parquet")


def test_same_selection_gives_same_bytes(tmp_path):
    files = [tmp_path / name / "w.parquet" for name in ("one", "two")]
    for file in files:
        file.parent.mkdir()
        assert save_selection(file, made("bins"), TARGET) == class_file(file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert class_file(files[0]).read_bytes() == class_file(files[1]).read_bytes()
    about = [json.loads(pq.read_schema(file).metadata[KEY]) for file in (files[0], class_file(files[0]))]
    assert about[0] == about[1]
    assert list(about[0]) == [
        *("format", "selector", "params", "kept_classes", "kept_images", "backbone", "pool", "target", "threshold")
    ]


def test_own_classes_come_first_without_a_distance(tmp_path):
    own = merge_tables([FeatureTable.of(np.ones((4, 6)), label=np.array([0, 0, 1, 1]), dataset=["own"] * 4)])
    save_selection(tmp_path / "w.parquet", made("bins"), TARGET, own)
    saved = load_selection(tmp_path / "w.parquet")
    assert saved.classes["reason"].to_pylist()[:2] == [KEPT, KEPT]
    assert saved.classes["distance"].to_pylist()[:2] == [None, None]
    assert saved.images["reason"].to_pylist()[:4] == [KEPT] * 4
    assert saved.images["label"].to_pylist() == [0, 0, 1, 1, *np.repeat(np.arange(2, 7), 4)]
    assert (saved.about["kept_classes"], saved.about["kept_images"]) == (2, 4)


def test_other_format_raises(tmp_path):
    path = tmp_path / "w.parquet"
    save_selection(path, made("none"), TARGET)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({KEY: json.dumps({"format": "other"}).encode()}), path)
    with pytest.raises(DataError, match="does not hold weights of this version: format 'other'"):
        load_selection(path)
    with pytest.raises(DataError, match="does not hold weights"):
        load_selection(tmp_path / "nothing.parquet")
