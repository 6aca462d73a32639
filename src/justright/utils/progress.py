"""Progress of long work: the library reports each step, and the caller decides how to show it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


@runtime_checkable  # the shape checker of the tests calls isinstance
class Track(Protocol):
    """A function that yields `steps` and shows progress meanwhile, such as a progress bar.

    `total` is the number of steps, and `what` names them, such as "images".
    """

    def __call__(self, steps: Iterable[T], total: int, what: str) -> Iterator[T]:
        """Yield every step."""
        ...


def silent(steps: Iterable[T], total: int, what: str) -> Iterator[T]:
    """Yield every step and show nothing: the default."""
    yield from steps


def bar(steps: Iterable[T], total: int, what: str) -> Iterator[T]:
    """Yield every step and show a progress bar: that of the notebook, or one on the terminal."""
    from tqdm import TqdmExperimentalWarning, TqdmWarning  # type: ignore[import-untyped]
    from tqdm.autonotebook import tqdm  # type: ignore[import-untyped]

    with warnings.catch_warnings():  # a notebook without ipywidgets shows the bar as text
        warnings.simplefilter("ignore", TqdmWarning)
        warnings.simplefilter("ignore", TqdmExperimentalWarning)
        shown = tqdm(steps, desc=what, total=total, leave=False, delay=1.0)
    yield from shown


def outermost_only(track: Track) -> Track:
    """Show nested work as one: only the outermost loop has a progress bar."""
    n_open = 0

    def outermost(steps: Iterable[T], total: int, what: str) -> Iterator[T]:
        nonlocal n_open
        shown = silent if n_open else track
        n_open += 1
        try:
            yield from shown(steps, total, what)
        finally:
            n_open -= 1

    return outermost
