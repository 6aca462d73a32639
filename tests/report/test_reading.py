from __future__ import annotations

from justright.errors import DataError
from justright.report.reading import Missing, attempt


def test_what_is_there_is_given():
    assert attempt(lambda: 3, "no") == 3


def test_what_is_not_there_is_missing_with_a_reason():
    def fail():
        raise DataError("torn", expected="whole")

    assert attempt(lambda: None, "not reached yet") == Missing("not reached yet")
    assert attempt(fail, "no scores") == Missing("no scores: torn")
    assert attempt(fail, "") == Missing("torn")
