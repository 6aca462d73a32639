from __future__ import annotations

import numpy as np
import pytest

from justright.benchmark.weight_files import SavedSelection, load_selection, save_selection
from justright.errors import DataError
from justright.evaluation.figures import to_svg
from justright.features.table import FeatureTable
from justright.report.saved_selection import restored
from justright.report.selection_figures import draw_selection
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
    if name != "discarding":  # no file has its threshold
        assert [to_svg(figure) for figure in drawn.values()] == [to_svg(figure) for figure in redrawn.values()]


def test_a_selector_of_another_version_is_refused(finished):
    saved = finished.selection
    with pytest.raises(DataError, match="'magic'"):
        restored(SavedSelection(saved.images, saved.classes, saved.about | {"selector": "magic"}))
