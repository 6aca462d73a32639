from __future__ import annotations

import pytest

from justright.errors import DataError
from justright.report.count_figures import SavedCount, draw_counts


def test_a_saved_estimate_is_drawn_with_its_k_and_interval(finished):
    one = SavedCount.of(finished.count["estimates"]["labeled-search"])
    assert (one.n_categories_, one.interval) == (24, (22, 27))
    (axes,) = draw_counts({"labeled-search": one}, {"labeled-search": one.interval}).axes
    assert axes.get_title(loc="left") == "labeled-search: K = 24"
    assert axes.lines[0].get_ydata().tolist() == one.curve_[:, 1].tolist()
    assert axes.lines[1].get_xdata() == [24, 24]


@pytest.mark.parametrize("said", [{}, {"n_categories": 3, "curve": [[1]], "axes": ["a", "b"]}])
def test_another_kind_of_file_is_refused(said):
    with pytest.raises(DataError, match="estimate of K"):
        SavedCount.of(said)
