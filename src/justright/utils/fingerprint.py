"""Tell whether saved work was made with the current settings, and what differs if not.

The settings are a JSON object; `utils.hashing.hash_value` makes a short name of one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from justright.utils.settings import flat


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
