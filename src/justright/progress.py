"""How long work tells of itself: the library reports, whoever calls decides what is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


@runtime_checkable  # the shape checker of the test run asks
class Track(Protocol):
    """Wraps an iterable of `total` steps and reports each step as `what`."""

    def __call__(self, steps: Iterable[T], total: int, what: str) -> Iterator[T]:
        """Pass every step on."""
        ...


def silent(steps: Iterable[T], total: int, what: str) -> Iterator[T]:
    """The default: say nothing."""
    yield from steps
