from __future__ import annotations

import sys

import pytest

from justright.utils.errors import JustrightError
from justright.utils.registry import Registry


@pytest.fixture
def family() -> Registry[object]:
    made: Registry[object] = Registry("shape")
    made.add("round", 1, "without corners")
    made.add("lazy", "colorsys:rgb_to_hsv", "imported late")
    return made


def test_members_are_found_in_the_order_they_were_added(family):
    assert list(family) == ["round", "lazy"]
    assert family["round"] == 1
    assert len(family) == 2


def test_member_given_as_text_is_imported_on_first_use(family):
    sys.modules.pop("colorsys", None)
    assert "lazy" in family
    assert family.about("lazy") == "imported late"
    assert "colorsys" not in sys.modules
    assert callable(family["lazy"])
    assert "colorsys" in sys.modules


def test_repr_explains_the_members(family):
    assert repr(family) == "Registry of each shape:\n  round: without corners\n  lazy: imported late"


def test_unknown_name_error_lists_the_known_ones(family):
    with pytest.raises(JustrightError, match=r"shape 'square'\n.*one of round, lazy"):
        _ = family["square"]


def test_name_is_unique_and_free_again_after_removal(family):
    with pytest.raises(JustrightError, match="a second shape named 'round'"):
        family.add("round", 2, "again")
    del family["round"]
    family.add("round", 2, "again")
    assert family["round"] == 2
