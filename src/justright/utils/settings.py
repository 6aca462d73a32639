"""Settings as fields of a dataclass, each with its default, help text and range.

`check_ranges` validates them, and the command line makes its options and help texts from them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from textwrap import shorten
from typing import Any

from justright.utils.errors import JustrightError


@dataclass(frozen=True)
class Range:
    """Allowed values of a setting: a test, its description, and the choices if there are any."""

    allows: Callable[[Any], bool]
    expected: str
    choices: Collection[str] = ()

    def or_none(self) -> Range:
        """The same range, with None allowed too."""
        return Range(lambda value: value is None or self.allows(value), f"{self.expected}, or None", self.choices)


def at_least(least: int, kind: type = int) -> Range:
    """Whole numbers of at least `least`; `kind` Integral also allows those of numpy, which JSON does not know."""
    return Range(
        lambda value: is_whole_number(value, kind) and least <= value <= MOST, f"a whole number of at least {least}"
    )


def one_of(*choices: str) -> Range:
    """One of these words."""
    return Range(lambda value: value in choices, f"one of {', '.join(choices)}", choices)


def number(allows: Callable[[Any], bool], expected: str) -> Range:
    """Numbers that pass a test; text, True and False do not count as numbers."""
    return Range(lambda value: isinstance(value, Real) and not isinstance(value, bool) and allows(value), expected)


MOST = 2**31 - 1
"""No count is larger: beyond it numbers do not fit where libraries keep them."""

MOST_SHOWN = 100  # characters of a value in an error

ANYTHING = Range(lambda value: True, "anything")
YES_OR_NO = Range(lambda value: isinstance(value, bool), "True or False")
WHOLE = Range(lambda value: is_whole_number(value, Integral), "a whole number")
COUNT = at_least(1)
SHARE = number(lambda value: 0 <= value <= 1, "from 0 to 1")
BELOW_1 = number(lambda value: 0 <= value < 1, "at least 0, below 1")
NOT_NEGATIVE = number(lambda value: 0 <= value < math.inf, "at least 0, and finite")
POSITIVE = number(lambda value: 0 < value < math.inf, "above 0, and finite")


def setting(default: Any, about: str = "", allowed: Range = ANYTHING) -> Any:
    """A field of a dataclass with its default (or `MISSING`), its line in help texts and its range."""
    metadata = {"about": about, "allowed": allowed}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def check_ranges(config: Any, error: type[JustrightError] = JustrightError) -> None:
    """Raise for the first setting of a dataclass that is out of its range."""
    for each in fields(config):
        check_range(each.name, getattr(config, each.name), each.metadata.get("allowed", ANYTHING), error)


def check_range(name: str, value: Any, allowed: Range, error: type[JustrightError] = JustrightError) -> None:
    """Raise if a value is out of its range."""
    try:
        is_fine = allowed.allows(value)
    except (TypeError, ValueError, LookupError, AttributeError):  # text or a list instead of a number
        is_fine = False
    if not is_fine:
        raise error(f"{name} is {shorten(repr(value), MOST_SHOWN)}", expected=allowed.expected)


def flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Nested settings as one level: {"config": {"rate": 1}} becomes {"config.rate": 1}."""
    result: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            result |= flat(value, f"{above}{name}.")
        else:
            result[f"{above}{name}"] = value
    return result


def is_whole_number(value: Any, kind: type = Integral) -> bool:
    """Whether a value is a whole number; True and False are not, although Python counts them as integers."""
    return isinstance(value, kind) and not isinstance(value, bool)


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Values that differ between two JSON objects: before and now, by dotted name; None if missing."""
    old, new = flat(json.loads(json.dumps(before))), flat(json.loads(json.dumps(now)))
    names = sorted(old.keys() | new.keys())
    return {name: (old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)}


def differences_text(changes: Mapping[str, tuple[Any, Any]]) -> str:
    """One line for each difference."""
    return "\n".join(f"  {name}: {was!r} before, {now!r} now" for name, (was, now) in changes.items())


def is_made_with(saved: Mapping[str, Any] | None, now: Mapping[str, Any]) -> bool:
    """Whether a saved JSON object exists and has the current settings in its entry `made_with`."""
    before = None if saved is None else saved.get("made_with")
    return isinstance(before, Mapping) and not differences(before, now)
