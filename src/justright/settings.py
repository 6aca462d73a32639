"""Settings as fields of a dataclass: default, what they are for and what they may be stand in one place.

From there `refuse_out_of_range` checks them and the command line makes its options and help texts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from justright.errors import JustrightError


@dataclass(frozen=True)
class Range:
    """What a setting may be: a test, the same in words, and the words to choose from if there are any."""

    allows: Callable[[Any], bool]
    expected: str
    choices: tuple[str, ...] = ()

    def or_none(self) -> Range:
        """The same, and None."""
        return Range(lambda value: value is None or self.allows(value), f"{self.expected}, or None", self.choices)


def at_least(least: int) -> Range:
    """Whole numbers from `least` on."""
    return Range(lambda value: _is_whole(value) and value >= least, f"a whole number of at least {least}")


def one_of(*choices: str) -> Range:
    """One of some words."""
    return Range(lambda value: value in choices, f"one of {', '.join(choices)}", choices)


ANYTHING = Range(lambda value: True, "anything")
COUNT = at_least(1)
SHARE = Range(lambda value: 0 <= value <= 1, "from 0 to 1")
BELOW_1 = Range(lambda value: 0 <= value < 1, "at least 0, below 1")
NOT_NEGATIVE = Range(lambda value: 0 <= value < math.inf, "at least 0, and finite")
POSITIVE = Range(lambda value: 0 < value < math.inf, "above 0, and finite")


def setting(default: Any, about: str = "", allowed: Range = ANYTHING) -> Any:
    """A field of a dataclass with its default, its line in help texts and its range."""
    metadata = {"about": about, "allowed": allowed}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def refuse_out_of_range(config: Any) -> None:
    """Raise at the first setting of a dataclass whose value cannot be."""
    for each in fields(config):
        allowed, value = each.metadata.get("allowed", ANYTHING), getattr(config, each.name)
        try:
            is_fine = allowed.allows(value)
        except TypeError:  # a word where a number should be
            is_fine = False
        if not is_fine:
            raise JustrightError(f"{each.name} is {value!r}", expected=allowed.expected)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
