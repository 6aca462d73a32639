from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from justright.errors import DataError
from justright.features.table import FeatureTable
from justright.runs.feature_pool import merge_tables
from justright.runs.selection_result import SelectionResult
from justright.runs.weight_files import KEPT, KEY, class_file, load_selection, save_selection
from justright.selection import BetaSelector, BinsSelector, CuiSelector, UniformSelector, row_shards

TARGET = FeatureTable.of(1 + np.random.default_rng(1).normal(size=(30, 6)))
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
    return SelectionResult.of(name, SELECTORS[name].fit_stream(pool, row_shards(TARGET.features)), pool)


def test_only_a_threshold_that_was_found_is_written(tmp_path):
    """That of Beta is a parameter; Cui and none have none."""
    for name in SELECTORS:
        result = made(name)
        save_selection(tmp_path / "w.parquet", result, TARGET)
        about = load_selection(tmp_path / "w.parquet").about
        if name == "bins":
            assert about["threshold"] == result.selector.split_threshold_.mean()
        else:
            assert "threshold" not in about


def test_files_of_two_selections_and_a_file_in_the_place_of_the_other_are_refused(tmp_path):
    for name in ("beta", "bins"):
        save_selection(tmp_path / f"{name}.parquet", made(name), TARGET)
    for file in ("bins.classes.parquet", "beta.parquet"):
        good = class_file(tmp_path / "beta.parquet").read_bytes()
        class_file(tmp_path / "beta.parquet").write_bytes((tmp_path / file).read_bytes())
        with pytest.raises(DataError, match=r"beta\.classes\.parquet"):
            load_selection(tmp_path / "beta.parquet")
        class_file(tmp_path / "beta.parquet").write_bytes(good)
    load_selection(tmp_path / "beta.parquet")


def test_the_same_selection_gives_the_same_bytes_and_both_files_say_what_made_them(tmp_path):
    files = [tmp_path / name / "w.parquet" for name in ("one", "two")]
    for file in files:
        file.parent.mkdir()
        assert save_selection(file, made("bins"), TARGET) == class_file(file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert class_file(files[0]).read_bytes() == class_file(files[1]).read_bytes()
    told = [json.loads(pq.read_schema(file).metadata[KEY]) for file in (files[0], class_file(files[0]))]
    assert told[0] == told[1]
    assert list(told[0]) == [
        *("format", "selector", "params", "kept_classes", "kept_images", "backbone", "pool", "target", "threshold")
    ]


def test_own_classes_come_first_and_what_classes_are_compared_by_is_empty_for_them(tmp_path):
    own = merge_tables([FeatureTable.of(np.ones((4, 6)), label=np.array([0, 0, 1, 1]), dataset=["own"] * 4)])
    save_selection(tmp_path / "w.parquet", made("bins"), TARGET, own)
    saved = load_selection(tmp_path / "w.parquet")
    assert saved.classes["reason"].to_pylist()[:2] == [KEPT, KEPT]
    assert saved.classes["distance"].to_pylist()[:2] == [None, None]
    assert saved.images["reason"].to_pylist()[:4] == [KEPT] * 4
    assert saved.images["label"].to_pylist() == [0, 0, 1, 1, *np.repeat(np.arange(2, 7), 4)]
    assert (saved.about["kept_classes"], saved.about["kept_images"]) == (2, 4)


def test_a_file_of_another_format_is_refused(tmp_path):
    path = tmp_path / "w.parquet"
    save_selection(path, made("none"), TARGET)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({KEY: json.dumps({"format": "other"}).encode()}), path)
    with pytest.raises(DataError, match="does not hold weights of this version: format 'other'"):
        load_selection(path)
    with pytest.raises(DataError, match="does not hold weights"):
        load_selection(tmp_path / "nothing.parquet")
