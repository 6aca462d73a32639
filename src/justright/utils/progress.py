"""Progress of long work: the library reports each step, and the caller decides how to show it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


@runtime_checkable  # the shape checker of the test run asks
class Track(Protocol):
    """A function that passes `steps` on and shows progress while they are taken, such as a progress bar.

    `total` says how many steps there are, and `what` names the work, such as "images".
    """

    def __call__(self, steps: Iterable[T], total: int, what: str) -> Iterator[T]:
        """Pass every step on."""
        ...


def silent(steps: Iterable[T], total: int, what: str) -> Iterator[T]:
    """Pass every step on and show nothing: the default."""
    yield from steps
