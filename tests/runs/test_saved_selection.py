from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from justright.errors import DataError
from justright.evaluation.figures import to_svg
from justright.features.table import FeatureTable
from justright.report.saved_selection import restored
from justright.report.selection_figures import draw_selection
from justright.runs.weight_files import KEY, SavedSelection, class_file, load_selection, save_selection
from justright.selection import BetaSelector, BinsSelector, CuiSelector, UniformSelector

SELECTORS = {
    "beta": BetaSelector(domain="affine"),
    "image": BetaSelector(domain="affine", level="image", weight_range=(0.01, 1.0)),
    "bins": BinsSelector(n_clusters=5, discard=False),
    "discarding": BinsSelector(n_clusters=5, select=False, mass="uniform"),
    "cui": CuiSelector(n_clusters=5),
    "none": UniformSelector(),
}
NAMES = {"image": "beta", "discarding": "bins"}


@pytest.mark.parametrize("name", SELECTORS)
def test_a_selection_comes_back_as_it_was(weighed, tmp_path, name):
    result = weighed(NAMES.get(name, name), SELECTORS[name], n_resamples=3 if name == "beta" else 0)
    save_selection(tmp_path / "w.parquet", result, FeatureTable.of(np.ones((2, 8), dtype=np.float32)))
    again = restored(load_selection(tmp_path / "w.parquet"))
    assert again.summary() == result.summary()
    assert again.source_cells() == result.source_cells()
    assert again.class_table.equals(result.class_table)
    drawn, redrawn = (draw_selection(each) for each in (result, again))
    assert drawn.keys() == redrawn.keys()
    assert [to_svg(figure) for figure in drawn.values()] == [to_svg(figure) for figure in redrawn.values()]


def test_only_a_threshold_that_was_found_is_written(weighed, tmp_path):
    """That of Beta is a parameter; Cui and none have none."""
    for name, selector in SELECTORS.items():
        result = weighed(NAMES.get(name, name), selector)
        save_selection(tmp_path / "w.parquet", result, FeatureTable.of(np.ones((2, 8), dtype=np.float32)))
        about = load_selection(tmp_path / "w.parquet").about
        if NAMES.get(name, name) == "bins":
            assert about["threshold"] == result.selector.split_threshold_.mean()
        else:
            assert "threshold" not in about


def test_a_file_without_the_threshold_opens_and_draws_no_line(weighed, tmp_path):
    result = weighed("bins", BinsSelector(n_clusters=5, select=False, mass="uniform"))
    path = tmp_path / "w.parquet"
    save_selection(path, result, FeatureTable.of(np.ones((2, 8), dtype=np.float32)))
    for file in (path, class_file(path)):  # as they were written before there was a threshold in them
        table = pq.read_table(file)
        about = json.loads(table.schema.metadata[KEY])
        del about["threshold"]
        pq.write_table(table.replace_schema_metadata({KEY: json.dumps(about).encode()}), file)
    again = restored(load_selection(path))
    (new,), (old,) = (draw_selection(each).values() for each in (result, again))
    assert [line.get_linestyle() for line in new.axes[0].lines].count("--") == 1
    assert [line.get_linestyle() for line in old.axes[0].lines].count("--") == 0
    assert "threshold" in to_svg(new)
    assert "threshold" not in to_svg(old)
    assert again.summary() == result.summary()


def test_a_selector_of_another_version_is_refused(finished):
    saved = finished.selection
    with pytest.raises(DataError, match="'magic'"):
        restored(SavedSelection(saved.images, saved.classes, saved.about | {"selector": "magic"}))
