"""What a selector decided, as plain values: the record that files, figures and pages are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxtyping import Float, Int

from justright.types import Array

MEASURES = ("similarity", "distance")
"""Columns that say how close a class is to the target."""


@dataclass(frozen=True)
class Remark:
    """Something to know about weights, and parameters of the selector of which one may help."""

    said: str
    params: Mapping[str, str]

    def for_python(self) -> str:
        """Advice for who writes a program."""
        return self._with([f"{name}={value!r}" for name, value in self.params.items()])

    def for_command_line(self) -> str:
        """Advice for who types a command."""
        return self._with([f"--{name.replace('_', '-')} {value}" for name, value in self.params.items()])

    def _with(self, advice: list[str]) -> str:
        return f"{self.said}; try {' or '.join(advice)}"


@dataclass(frozen=True)
class ImageWeights:
    """Weights of single images of the pool, in its order, where a selector weighs them one by one."""

    labels: Int[Array, " images"]
    weight: Float[Array, " images"]
    reason: list[str]


@dataclass(frozen=True)
class ClassWeights:
    """The decision of a selector, one entry per class of the pool.

    classes  labels in ascending order
    weight   at least 0; 0 leaves a class out, and 1 for all changes nothing
    reason   in a few words, why a class weighs what it weighs
    columns  what led there, by name; "similarity" or "distance" says how close a class is to the target
    found    numbers the selector found by itself, such as a threshold, by name
    images   weights of single images, if they were weighed one by one
    remarks  what a person should know about these weights
    """

    classes: Int[Array, " classes"]
    weight: Float[Array, " classes"]
    reason: list[str]
    columns: Mapping[str, Array] = field(default_factory=dict)
    found: Mapping[str, float] = field(default_factory=dict)
    images: ImageWeights | None = None
    remarks: tuple[Remark, ...] = ()

    @property
    def measure(self) -> str:
        """The column by which classes are compared: "similarity", "distance", or nothing."""
        return next((name for name in MEASURES if name in self.columns), "")
