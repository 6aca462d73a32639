from __future__ import annotations

import pytest

from justright.discovery.methods import METHODS
from justright.runs.spec import RunSpec, checked_params, config_of
from justright.selection import BetaSelector
from justright.utils.errors import JustrightError, did_you_mean


def test_error_has_problem_expected_and_advice():
    error = JustrightError("three eyes", expected="two", advice="close one")
    assert str(error) == "three eyes\nExpected: two\nTry: close one"
    assert (error.problem, error.expected, error.advice) == ("three eyes", "two", "close one")


def test_empty_parts_have_no_line():
    assert str(JustrightError("three eyes")) == "three eyes"


def test_the_closest_name_is_suggested_in_every_family():
    settings, params = {"view": 4}, {"alfa": 1}
    for meant, call in {
        "simgcd": lambda: METHODS["simgc"],
        "alpha": lambda: BetaSelector().set_params(**params),
        "views": lambda: config_of(RunSpec(settings=settings)),
        "threshold": lambda: checked_params("beta", {"treshold": 1}),
    }.items():
        with pytest.raises(JustrightError, match=rf"did you mean {meant}\?"):
            call()
    assert did_you_mean("nonsense", ["alpha", "beta"]) == ""
