"""What the figure of a selection shows, as plain numbers: a selector says it, `justright.report` draws it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from justright.types import Array


@dataclass(frozen=True)
class SelectionPlot:
    """One mark a class, and what explains where the marks lie.

    A figure of the kind "ranked" has classes from the closest on against the measure, "weights" the measure against
    the weight. Curves are lines as x and y behind the marks; the last one decides the weights.
    """

    measure: str  # the column of the classes that is shown: "similarity" or "distance"
    kind: str = "ranked"
    title: str = ""  # above the figure
    curves: tuple[tuple[Float[Array, " points"], Float[Array, " points"]], ...] = ()
    level: tuple[float, str] | None = None  # a horizontal line and its text, such as a threshold
    cut: tuple[int, str] | None = None  # a vertical line after so many classes of the ranking, and its text
    parts: tuple[tuple[int, str, bool], ...] = ()  # of the ranking: number of classes, name, whether they are kept


def from_the_closest(measure: str, values: Float[Array, " classes"]) -> Int[Array, " classes"]:
    """Places of the classes in the order of closeness: rising distance or falling similarity."""
    return np.argsort(values if measure == "distance" else -values, kind="stable")
