"""Can the K that was given be right? Asked without a label of the target, of the interval of an estimate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_IMAGES = 20_000  # of more images no K is checked: an estimate would take minutes, and memory


def k_note(given: int, estimate: Mapping[str, Any]) -> str | None:
    """What to say of a K that lies outside the interval of an estimate; None where it lies inside, or there is none.

    How often that is right: docs/findings.md. What a wrong K costs: docs/discovery.md.

    Parameters:
        given: the K that a person gave.
        estimate: as in count.json.
    """
    if estimate["interval"] is None:
        return None
    low, high = estimate["interval"]
    if low <= given <= high:
        return None
    side, cost = ("small", "share clusters") if given < low else ("large", "are split")
    return (
        f"--k {given:,} looks too {side}: these images suggest {estimate['n_categories']:,} categories "
        f"({low:,} to {high:,}). With too {side} a K categories {cost}; leave --k out to take the estimate, unless you "
        "know better"
    )
