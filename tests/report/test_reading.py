from __future__ import annotations

from justright.errors import DataError
from justright.report.reading import Missing, PagePart, attempt, optional, read_parts


def test_what_is_there_is_given():
    assert attempt(lambda: 3, "no") == 3


def test_what_is_not_there_is_missing_with_a_reason():
    def fail():
        raise DataError("torn", expected="whole")

    assert attempt(lambda: None, "not reached yet") == Missing("not reached yet")
    assert attempt(fail, "no scores") == Missing("no scores: torn")
    assert attempt(fail, "") == Missing("torn")
    assert optional(fail) is None
    assert optional(lambda: None) is None
    assert optional(lambda: 3) == 3


def test_a_part_that_fails_says_why_and_the_others_are_read():
    def fail():
        raise DataError("the <file> is torn")

    first, second, third = read_parts(
        {"a": ("One", fail), "b": ("Two", lambda: {"n": 3}), "c": ("Three", lambda: Missing("not reached yet"))}
    )
    assert first == PagePart("a", "One", Missing("This part cannot be shown: the <file> is torn"))
    assert second.values == {"n": 3}
    assert third.values == Missing("not reached yet")
