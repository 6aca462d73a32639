from __future__ import annotations

from tests.report.fake_runs import fake_run
from tests.report.html_checks import text_of

from justright.report.compared_scores import against_baseline, compared_scores, over_seeds
from justright.report.comparison import Comparison


def of(*runs):
    return Comparison(tuple(runs))


def test_seeds_are_averaged_where_there_are_several():
    said = text_of(over_seeds(of(fake_run("a", seed=0, accuracy=0.5), fake_run("b", seed=1, accuracy=0.7))))
    assert "a and 1 more beta 2 60.0 ± 14.1" in said
    assert "cannot be told" in over_seeds(of(fake_run("a"), fake_run("b", method="x")))


def test_selection_that_did_not_help_is_said_so():
    said = text_of(against_baseline(of(fake_run("a", accuracy=0.60), fake_run("b", selector="none", accuracy=0.61))))
    assert "New: better in 0, worse in 0, within the noise in 1 of 1 settings." in said
    assert "-1.0 [-8.1, +6.1] 1 / 1 within the noise" in said


def test_without_a_run_to_compare_with_nothing_is_claimed():
    assert "cannot be told" in against_baseline(of(fake_run("a"), fake_run("b", seed=1)))
    assert "justright review" in compared_scores(of(fake_run("a", accuracy=None), fake_run("b", accuracy=None)))
