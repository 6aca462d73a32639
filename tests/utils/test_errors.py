from __future__ import annotations

import pytest

from justright.utils import errors
from justright.utils.errors import JustrightError


def test_error_has_problem_expected_and_advice():
    error = JustrightError("three eyes", expected="two", advice="close one")
    assert str(error) == "three eyes\nExpected: two\nTry: close one"
    assert (error.problem, error.expected, error.advice) == ("three eyes", "two", "close one")


def test_empty_parts_have_no_line():
    assert str(JustrightError("three eyes")) == "three eyes"


@pytest.mark.parametrize("kind", ["DataError", "MissingDataError", "BadImageError", "DegenerateError"])
def test_all_errors_are_justright_errors(kind):
    with pytest.raises(JustrightError, match="empty folder"):
        raise getattr(errors, kind)("empty folder")
