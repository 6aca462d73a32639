"""What a selector decided and what its figure shows, as plain values: files, figures and pages are made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from justright.utils.types import Array

MEASURES = ("similarity", "distance")  # columns that say how close a class is to the target


@dataclass(frozen=True)
class Remark:
    """Something to know about weights, and parameters of the selector of which one may help."""

    said: str
    params: Mapping[str, str]

    def for_python(self) -> str:
        """Advice for who writes a program."""
        return f"{self.said}; try {' or '.join(f'{name}={value!r}' for name, value in self.params.items())}"

    def for_command_line(self) -> str:
        """Advice for who types a command."""
        options = (f"--{name.replace('_', '-')} {value}" for name, value in self.params.items())
        return f"{self.said}; try {' or '.join(options)}"


@dataclass(frozen=True)
class ImageWeights:
    """Weights of single images of the pool, in its order, where a selector weighs them one by one."""

    labels: Int[Array, " images"]
    weight: Float[Array, " images"]
    reason: list[str]


@dataclass(frozen=True)
class ClassWeights:
    """The decision of a selector, one entry per class of the pool."""

    classes: Int[Array, " classes"]  # labels in ascending order
    weight: Float[Array, " classes"]  # at least 0; 0 leaves a class out, and 1 for all changes nothing
    reason: list[str]  # in a few words, why a class weighs what it weighs
    columns: Mapping[str, Array] = field(default_factory=dict)  # what led there, by name; may hold one of MEASURES
    found: Mapping[str, float] = field(default_factory=dict)  # numbers the selector found, such as a threshold, by name
    images: ImageWeights | None = None  # weights of single images, if they were weighed one by one
    remarks: tuple[Remark, ...] = ()  # what a person should know about these weights

    @property
    def measure(self) -> str:
        """The column by which classes are compared: "similarity", "distance", or nothing."""
        return next((name for name in MEASURES if name in self.columns), "")


@dataclass(frozen=True)
class SelectionPlot:
    """The figure of a selection, which `justright.report` draws: one mark a class, and what explains where it lies.

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
