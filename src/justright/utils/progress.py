"""Progress of long work: the library reports each step, and the caller decides how to show it."""

from __future__ import annotations

import warnings
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


def bar(steps: Iterable[T], total: int, what: str) -> Iterator[T]:
    """Yield every step and show a progress bar: that of the notebook, or one on the terminal."""
    from tqdm import TqdmExperimentalWarning, TqdmWarning  # type: ignore[import-untyped]
    from tqdm.autonotebook import tqdm  # type: ignore[import-untyped]

    with warnings.catch_warnings():  # a notebook without ipywidgets shows the bar as text
        warnings.simplefilter("ignore", TqdmWarning)
        warnings.simplefilter("ignore", TqdmExperimentalWarning)
        shown = tqdm(steps, desc=what, total=total, leave=False, delay=1.0)
    yield from shown
