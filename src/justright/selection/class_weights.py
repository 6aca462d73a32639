"""The decision of a selector and the content of its figure, as plain values for files, figures and pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from justright.utils.types import Array

MEASURES = ("similarity", "distance")  # columns with the closeness of a class to the target


@dataclass(frozen=True)
class ImageWeights:
    """Weights of single images of the pool, in its order."""

    labels: Int[Array, " images"]
    weight: Float[Array, " images"]
    reason: list[str]


@dataclass(frozen=True)
class ClassWeights:
    """The decision of a selector, one entry per class of the pool."""

    classes: Int[Array, " classes"]  # labels in ascending order
    weight: Float[Array, " classes"]  # at least 0; 0 leaves a class out, and 1 for all changes nothing
    reason: list[str]  # of each weight, in a few words
    # further values per class by name; may include one of MEASURES
    columns: Mapping[str, Array] = field(default_factory=dict)
    found: Mapping[str, float] = field(default_factory=dict)  # further numbers by name, such as a threshold
    images: ImageWeights | None = None  # if single images were weighed
    warnings: tuple[str, ...] = ()

    @property
    def measure(self) -> str:
        """The column by which classes are compared: "similarity", "distance", or "" for none."""
        return next((name for name in MEASURES if name in self.columns), "")


@dataclass(frozen=True)
class SelectionPlot:
    """The figure of a selection, which `justright.report` draws with a mark per class.

    A figure of the kind "ranked" shows the measure of the classes in order of closeness, "weights" the weight against
    the measure. Curves are lines (x, y) behind the marks; the last one defines the weights.
    """

    measure: str  # the column of the classes that is shown: "similarity" or "distance"
    kind: str = "ranked"
    title: str = ""  # above the figure
    curves: tuple[tuple[Float[Array, " points"], Float[Array, " points"]], ...] = ()
    level: tuple[float, str] | None = None  # a horizontal line and its text, such as a threshold
    cut: tuple[int, str] | None = None  # a vertical line after this many ranked classes, and its text
    parts: tuple[tuple[int, str, bool], ...] = ()  # of the ranking: number of classes, name, whether they are kept


def closest_first(measure: str, values: Float[Array, " classes"]) -> Int[Array, " classes"]:
    """Indices of the classes in order of closeness: ascending distance or descending similarity."""
    return np.argsort(values if measure == "distance" else -values, kind="stable")
