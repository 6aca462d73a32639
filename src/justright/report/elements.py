"""What the templates know how to show beside text: pictures, and tables with numbers in readable digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MOST_DECIMALS = 5


@dataclass(frozen=True)
class Picture:
    """An image inside the page.

    uri     the image itself, as text
    width   of the image, in pixels
    height  of the image, in pixels
    alt     what a person who cannot see it is told
    """

    uri: str
    width: int
    height: int
    alt: str


@dataclass(frozen=True)
class Table:
    """Columns and rows. A cell is text, a number, a `Name`, `Words`, a `Picture`, or None where it is empty."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]

    @property
    def decimals(self) -> list[int | None]:
        """For each column, how many decimals its numbers need; None for a column of anything else."""
        return [_decimals([row[place] for row in self.rows]) for place in range(len(self.columns))]


def cut_in_the_middle(rows: Sequence[Any], most: int) -> tuple[list[Any], int]:
    """Both ends of a long list, and how many entries are left out between them."""
    if len(rows) <= most:
        return list(rows), 0
    n_last = most // 2
    return [*rows[: most - n_last], *rows[len(rows) - n_last :]], len(rows) - most


def _decimals(values: Sequence[object]) -> int | None:
    """As many as show three digits of the largest number, and how the numbers differ."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if not numbers or len(numbers) + values.count(None) < len(values):
        return None
    finite = [value for value in numbers if math.isfinite(value)]
    largest = max(map(abs, finite), default=0)
    if largest == 0 or all(isinstance(value, int) for value in numbers):
        return 0
    spread = max(finite) - min(finite) or largest
    return max(0, 2 - math.floor(math.log10(largest)), min(MOST_DECIMALS, 1 - math.floor(math.log10(spread))))
