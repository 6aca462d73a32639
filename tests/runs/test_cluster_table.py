from __future__ import annotations

import csv

import numpy as np
import pyarrow as pa
import pytest

from justright.discovery.doubts import Doubt
from justright.discovery.predictions import Predictions, category_names
from justright.runs.cluster_table import COLUMNS, doubts_from, doubts_json, write_clusters
from justright.utils.errors import DataError

DOUBTS = [Doubt(1, 0, (4, 5)), Doubt(2, None, (7,))]


@pytest.fixture
def result() -> Predictions:
    index = pa.table({name: [f"{name} {number}" for number in range(9)] for name in ("id", "dataset", "path")})
    confidence = np.linspace(0.1, 0.9, 9).astype(np.float32)
    given = np.array([True, *[False] * 8])
    categories = category_names(["cat, or dog", "hen"], 4)
    cluster = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2])
    return Predictions(index, cluster, confidence, np.zeros(9, bool), categories, given)


def test_category_rows_have_purity_and_doubt(result, tmp_path):
    write_clusters(tmp_path / "clusters.csv", result, DOUBTS)
    with (tmp_path / "clusters.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [(row["category"], row["kind"], row["images"]) for row in rows] == [
        ("cat, or dog", "known", "4"),
        ("hen", "known", "2"),
        ("new-001", "discovered", "3"),
        ("new-002", "discovered", "0"),
    ]
    for number, row in enumerate(rows):
        sure = [
            float(result.confidence[place])
            for place in range(9)
            if result.cluster[place] == number and not result.is_given[place]
        ]
        assert (
            row["expected_purity"] == ""
            if not sure
            else float(row["expected_purity"]) == pytest.approx(sum(sure) / len(sure), abs=1e-4)
        )
    assert [(row["doubt"], row["with"]) for row in rows] == [
        ("", ""),
        ("belongs with", "cat, or dog"),
        ("two kinds", ""),
        ("", ""),
    ]


def test_no_purity_without_calibration(result, tmp_path):
    write_clusters(tmp_path / "clusters.csv", result, [], has_purity=False)
    with (tmp_path / "clusters.csv").open(newline="", encoding="utf-8") as file:
        assert {row["expected_purity"] for row in csv.DictReader(file)} == {""}


def test_doubts_are_read_as_written(result):
    saved = doubts_json(result, DOUBTS)
    assert saved["doubts"][1] == {"category": "new-001", "doubt": "two kinds", "with": None, "images": ["id 7"]}
    assert doubts_from(saved, result) == DOUBTS
    assert doubts_from(None, result) == []


def test_doubts_of_other_predictions_raise(result):
    saved = {"doubts": [{"category": "gone", "doubt": "two kinds", "with": None, "images": []}]}
    with pytest.raises(DataError, match="does not fit"):
        doubts_from(saved, result)
