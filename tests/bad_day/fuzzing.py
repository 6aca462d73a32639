"""Random damage to bytes, random values for a schema, and how much of it a test tries.

In the usual test run every fuzz test tries the same few cases. `JUSTRIGHT_FUZZ=100 pytest tests/bad_day` tries a
hundred times as many, new ones each time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

TIMES = int(os.environ.get("JUSTRIGHT_FUZZ", "1"))


def budget(n: int) -> settings:
    """Settings of a test that tries `n` cases in the usual run."""
    return settings(
        max_examples=n * TIMES,
        derandomize=TIMES == 1,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


Damage = Callable[[bytes], bytes]


def damages(max_size: int = 3) -> st.SearchStrategy[list[Damage]]:
    """One or more kinds of damage, to be done one after the other; places are parts of the length."""
    part = st.floats(0, 1, exclude_max=True)
    noise = st.binary(min_size=1, max_size=40)
    one = st.one_of(
        st.builds(_flip, part, st.integers(0, 7)),
        st.builds(_cut, part, st.integers(1, 400)),
        st.builds(_truncate, part),
        st.builds(_insert, part, noise),
        st.builds(_zero, part, st.integers(1, 4096)),
        st.builds(_swap, part, part),
        st.builds(_copy_line, part, part),
        st.builds(_drop_line, part),
        st.builds(_insert_line, part, noise),
        st.builds(_swap_lines, part, part),
    )
    return st.lists(one, min_size=1, max_size=max_size)


def damaged(data: bytes, damage: list[Damage]) -> bytes:
    """What is left of the data."""
    for each in damage:
        data = each(data)
    return data


def _named(name: str, change: Damage) -> Damage:
    """With a name that a failing case shows."""
    change.__qualname__ = change.__name__ = name
    return change


def _flip(part: float, bit: int) -> Damage:
    def change(data: bytes) -> bytes:
        place = int(part * len(data))
        return data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :] if data else data

    return _named(f"flip({part}, {bit})", change)


def _cut(part: float, n: int) -> Damage:
    return _named(f"cut({part}, {n})", lambda data: data[: int(part * len(data))] + data[int(part * len(data)) + n :])


def _truncate(part: float) -> Damage:
    return _named(f"truncate({part})", lambda data: data[: int(part * len(data))])


def _insert(part: float, noise: bytes) -> Damage:
    return _named(
        f"insert({part}, {noise!r})", lambda data: data[: int(part * len(data))] + noise + data[int(part * len(data)) :]
    )


def _zero(part: float, n: int) -> Damage:
    def change(data: bytes) -> bytes:
        place = int(part * len(data))
        return data[:place] + b"\0" * min(n, len(data) - place) + data[place + n :]

    return _named(f"zero({part}, {n})", change)


def _swap(one: float, other: float) -> Damage:
    def change(data: bytes) -> bytes:
        first, second = sorted((int(one * len(data)), int(other * len(data))))
        return data[second:] + data[first:second] + data[:first]

    return _named(f"swap({one}, {other})", change)


def _lines(name: str, change: Callable[[list[bytes]], None]) -> Damage:
    def changed(data: bytes) -> bytes:
        lines = data.splitlines(keepends=True)
        if lines:
            change(lines)
        return b"".join(lines)

    return _named(name, changed)


def _copy_line(one: float, other: float) -> Damage:
    return _lines(
        f"copy_line({one}, {other})",
        lambda lines: lines.insert(int(other * (len(lines) + 1)), lines[int(one * len(lines))]),
    )


def _drop_line(part: float) -> Damage:
    return _lines(f"drop_line({part})", lambda lines: lines.pop(int(part * len(lines))) and None)


def _insert_line(part: float, noise: bytes) -> Damage:
    return _lines(
        f"insert_line({part}, {noise!r})", lambda lines: lines.insert(int(part * (len(lines) + 1)), noise + b"\n")
    )


def _swap_lines(one: float, other: float) -> Damage:
    def change(lines: list[bytes]) -> None:
        first, second = int(one * len(lines)), int(other * len(lines))
        lines[first], lines[second] = lines[second], lines[first]

    return _lines(f"swap_lines({one}, {other})", change)


ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.sampled_from([-1, 0, 1, 2**31 - 1, 2**31, 2**53, 2**63, 2**64, 10**30]),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=30),
        st.sampled_from(["", "\0", "<script>", "../..", "a" * 300, "\u202e", "NaN", "{cluster}"]),
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=6,
)
"""Any JSON value."""


def fits(schema: dict[str, Any], small: int = 40) -> st.SearchStrategy[Any]:
    """Values that a JSON schema allows, as pydantic writes it; most numbers are below `small`, where things are."""
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return st.one_of([fits(each, small) for each in schema[several]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "integer":
            low = schema.get("minimum", -(2**60))
            high = schema.get("maximum", schema.get("exclusiveMaximum", 2**60 + 1) - 1)
            return st.integers(max(low, -1), min(high, small)) | st.integers(low, high)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case "array":
            n = schema.get("minItems", 0)
            return st.lists(
                fits(schema["items"], small), min_size=n, max_size=min(schema.get("maxItems", n + 4), n + 4)
            )
        case "string" if "pattern" in schema:
            return st.from_regex(schema["pattern"], fullmatch=True)
        case "string":
            longest = schema.get("maxLength", 60)
            return st.text("gull tern", min_size=1, max_size=min(longest, 9)) | st.text(max_size=longest)
        case "object":
            fields = {name: fits(each, small) for name, each in schema.get("properties", {}).items()}
            return st.fixed_dictionaries(fields)
        case _:
            return ANYTHING


def nearly_fits(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects that a schema allows, or with a field that is missing, too many or of any other value."""
    names = [*schema.get("properties", {}), "extra"]

    def spoil(value: dict[str, Any], name: str, other: Any, how: str) -> dict[str, Any]:
        rest = {key: each for key, each in value.items() if key != name}
        return value if how == "as it is" else rest if how == "missing" else rest | {name: other}

    hows = st.sampled_from(["as it is", "as it is", "missing", "other"])
    return st.builds(spoil, fits(schema), st.sampled_from(names), ANYTHING, hows)
