"""Lists in error messages."""

from __future__ import annotations

from collections.abc import Sequence

from justright.data.quarantine import printable

N_LISTED = 5


def listed(lines: Sequence[str]) -> str:
    """The first lines, indented, and the number of the others."""
    more = [f"  and {len(lines) - N_LISTED:,} more"] if len(lines) > N_LISTED else []
    return "\n".join([*(f"  {printable(line)}" for line in lines[:N_LISTED]), *more])
