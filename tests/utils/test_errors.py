from __future__ import annotations

from justright.utils.errors import JustrightError


def test_error_has_problem_expected_and_advice():
    error = JustrightError("three eyes", expected="two", advice="close one")
    assert str(error) == "three eyes\nExpected: two\nTry: close one"
    assert (error.problem, error.expected, error.advice) == ("three eyes", "two", "close one")


def test_empty_parts_have_no_line():
    assert str(JustrightError("three eyes")) == "three eyes"
