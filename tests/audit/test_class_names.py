"""Names of classes, compared as a person would."""

from __future__ import annotations

import pytest

from justright.audit.class_names import comparable_name


@pytest.mark.parametrize(
    ("left", "right", "is_same"),
    [
        ("001.Black_footed_Albatross", "black footed albatross", True),
        ("birds/gulls/Herring_Gull", "herring-gull", True),
        ("12 Cat", "CAT", True),
        ("Cafe\u0301", "caf\u00e9", True),
        ("cat", "dog", False),
        ("7up", "up", False),
    ],
)
def test_names_are_compared_as_a_person_would(left, right, is_same):
    assert (comparable_name(left) == comparable_name(right)) is is_same


@pytest.mark.parametrize("name", ["7", "007", "12/7", "", "_"])
def test_a_mere_number_is_not_compared(name):
    assert comparable_name(name) is None
