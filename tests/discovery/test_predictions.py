from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from justright.discovery.predictions import Category, Predictions, category_names
from justright.utils.errors import DataError


@pytest.fixture
def predictions():
    index = pa.table({name: ["a", "b", "c"] for name in ("id", "dataset", "path")})
    categories = category_names(["cat", "dog"], 4)
    confidence, is_neither = np.array([0.9, 0.5, 0.1], np.float32), np.array([False, False, True])
    return Predictions(index, np.array([1, 3, 3]), confidence, is_neither, categories)


def test_known_classes_come_first_and_keep_their_names():
    assert category_names(["cat"], 3) == (
        Category("cat", "known"),
        Category("new-001", "discovered"),
        Category("new-002", "discovered"),
    )


def test_over_1000_clusters_sort_by_name():
    names = [category.name for category in category_names([], 1200)]
    assert names == sorted(names)


def test_new_names_avoid_names_of_earlier_rounds():
    names = [each.name for each in category_names(["cat", "new-003", "new-7", "New-012", "new-x"], 8)]
    assert names == ["cat", "new-003", "new-7", "New-012", "new-x", "new-013", "new-014", "new-015"]
    assert [each.name for each in category_names(["new-999"], 2)] == ["new-999", "new-1000"]


def test_given_and_predicted_categories_are_distinguished(predictions, tmp_path):
    given = replace(predictions, is_given=np.array([True, False, False]))
    given.save(tmp_path / "p.parquet")
    assert Predictions.open(tmp_path / "p.parquet").is_given.tolist() == [True, False, False]
    assert given.table()["source"].to_pylist() == ["given", "predicted", "predicted"]


def test_predictions_round_trip(predictions, tmp_path):
    predictions.save(tmp_path / "p.parquet")
    again = Predictions.open(tmp_path / "p.parquet")
    assert again.cluster.tolist() == predictions.cluster.tolist()
    assert again.confidence.tolist() == predictions.confidence.tolist()
    assert again.categories == predictions.categories
    assert again.ids == ["a", "b", "c"]
    assert again.sizes.tolist() == [0, 1, 0, 2]
    assert again.is_neither.tolist() == [False, False, True]


def test_csv_has_path_category_kind_confidence_and_source(predictions, tmp_path):
    predictions.save(tmp_path / "p.csv")
    rows = pyarrow.csv.read_csv(tmp_path / "p.csv").to_pylist()
    assert list(rows[0]) == ["path", "category", "kind", "confidence", "source"]
    assert {row["source"] for row in rows} == {"predicted"}
    assert [(row["category"], row["kind"]) for row in rows] == [
        ("dog", "known"),
        ("new-002", "discovered"),
        ("new-002", "neither"),
    ]


@pytest.mark.parametrize("content", [b"", b"PAR1 nonsense", None])
def test_other_files_are_rejected(content, tmp_path):
    path = tmp_path / "p.parquet"
    if content is None:
        pa.parquet.write_table(pa.table({"x": [1]}), path)
    else:
        path.write_bytes(content)
    with pytest.raises(DataError, match="does not hold predictions"):
        Predictions.open(path)


def test_save_rejects_other_endings(predictions, tmp_path):
    with pytest.raises(DataError, match=r"\.parquet or \.csv"):
        predictions.save(tmp_path / "p.pkl")
