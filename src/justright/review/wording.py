"""Numbers and lists for sentences."""

from __future__ import annotations

from collections.abc import Sequence

from justright.data.quarantine import printable

N_LISTED = 5


def images_text(n: int) -> str:
    """A number of images, such as 1 image or 1,200 images."""
    return f"{n:,} image{'' if n == 1 else 's'}"


def listed(lines: Sequence[str]) -> str:
    """The first lines, indented, and the number of the others."""
    more = [f"  and {len(lines) - N_LISTED:,} more"] if len(lines) > N_LISTED else []
    return "\n".join([*(f"  {printable(line)}" for line in lines[:N_LISTED]), *more])
