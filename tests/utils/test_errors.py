from __future__ import annotations

import pytest

from justright.utils import errors
from justright.utils.errors import JustrightError


def test_an_error_says_what_came_what_was_expected_and_what_to_try():
    error = JustrightError("three eyes", expected="two", advice="close one")
    assert str(error) == "three eyes\nExpected: two\nTry: close one"
    assert (error.problem, error.expected, error.advice) == ("three eyes", "two", "close one")


def test_what_is_not_said_leaves_no_line():
    assert str(JustrightError("three eyes")) == "three eyes"


@pytest.mark.parametrize("kind", ["DataError", "MissingDataError", "BadImageError", "DegenerateError"])
def test_every_error_of_the_package_can_be_caught_as_one(kind):
    with pytest.raises(JustrightError, match="came"):
        raise getattr(errors, kind)("came")
