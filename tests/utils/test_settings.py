from __future__ import annotations

from dataclasses import dataclass

import pytest

from justright.utils.errors import JustrightError
from justright.utils.settings import COUNT, POSITIVE, SHARE, at_least, check_ranges, flat, one_of, setting


@dataclass(frozen=True)
class Config:
    share: float = setting(0.5, "how much", SHARE)
    rate: float = setting(0.1, "how fast", POSITIVE)
    size: int | None = setting(None, "how many", COUNT.or_none())
    kind: str = setting("plain", "which", one_of("plain", "fancy"))
    names: list[str] = setting(list, "any")

    def __post_init__(self) -> None:
        check_ranges(self)


def test_mutable_defaults_are_not_shared():
    assert Config().names is not Config().names
    assert Config().share == 0.5


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"share": 1.5}, "share is 1.5\n.*from 0 to 1"),
        ({"share": "a lot"}, "share is 'a lot'"),
        ({"share": float("nan")}, "share is nan"),
        ({"rate": 0}, "above 0"),
        ({"rate": float("inf")}, "finite"),
        ({"size": 0}, "at least 1, or None"),
        ({"size": True}, "size is True"),
        ({"size": 2.0}, "size is 2.0"),
        ({"kind": "odd"}, "one of plain, fancy"),
    ],
)
def test_value_out_of_range_error_has_the_range(changes, words):
    with pytest.raises(JustrightError, match=words):
        Config(**changes)


def test_at_least_includes_its_bound():
    assert at_least(2).allows(2)
    assert not at_least(2).allows(1)


def test_nested_settings_become_one_level():
    assert flat({"a": {"b": {"c": 1}}, "d": [1, 2]}) == {"a.b.c": 1, "d": [1, 2]}
