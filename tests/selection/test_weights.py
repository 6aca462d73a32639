from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from justright.errors import DataError
from justright.selection import BetaSelector, BinsSelector, load_weights, save_weights


def test_weights_come_back_as_they_were_written(cloud, tmp_path):
    selector = BetaSelector(domain="affine", weight_range=(0.1, 2.0)).fit(cloud.pool, cloud.labels, cloud.target)
    save_weights(tmp_path / "weights.json", selector)
    read = load_weights(tmp_path / "weights.json")
    assert (read.selector, read.params["domain"], read.params["weight_range"]) == ("BetaSelector", "affine", [0.1, 2.0])
    assert np.array_equal(read.classes, selector.classes_)
    assert np.array_equal(read.class_weight, selector.class_weight_)
    assert read.reason == selector.reason_
    assert [path.name for path in tmp_path.iterdir()] == ["weights.json"]


def test_an_estimator_is_written_as_its_number(plane, tmp_path):
    selector = BinsSelector(n_clusters=SimpleNamespace(n_categories_=12)).fit(plane.pool, plane.labels, plane.target)
    save_weights(tmp_path / "weights.json", selector)
    assert load_weights(tmp_path / "weights.json").params["n_clusters"] == 12


@pytest.mark.parametrize("content", [None, "not json", "{}", "[]"])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "weights.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DataError, match=r"weights\.json"):
        load_weights(path)
