"""What all stages of one piece of work share: how progress and messages are shown, and where work runs.

Example:
    with use(progress=progress_bar, engine=engine):
        extract(images, backbone, out)  # shows a progress bar, computes on the engine
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")


Track: TypeAlias = Callable[[Iterable[Any], int, str], Iterator[Any]]
"""Yields steps and shows progress meanwhile, as a progress bar does: of the steps, their number, and what they are."""


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


@dataclass(frozen=True)
class Context:
    """Shared by all calls below a `with use(...)`. None of it changes a result, so it is no argument of functions."""

    progress: Track = silent
    message: Callable[[str], None] = logging.getLogger("justright").info  # shows one sentence to the user
    engine: Any = None  # where features, views and weights are computed; None: threads of this process
    tensorboard: bool = False  # whether trainings also write their curves for TensorBoard
    command: str = ""  # the command line that made this call, for run.json; empty in Python


_current: ContextVar[Context] = ContextVar("context", default=Context())  # noqa: B039  # it is frozen


def current() -> Context:
    """The context of this call."""
    return _current.get()


@contextmanager
def use(**changes: Any) -> Iterator[Context]:
    """Change some fields of the context for the calls in this block."""
    token = _current.set(replace(_current.get(), **changes))
    try:
        yield _current.get()
    finally:
        _current.reset(token)


def track(steps: Iterable[T], total: int, what: str) -> Iterator[T]:
    """Yield `steps` and show progress: `total` is the number of steps, `what` names them, such as "images"."""
    return current().progress(steps, total, what)


def notify(message: str) -> None:
    """Show one sentence to the user: on the terminal, or in the log of a Python program."""
    current().message(message)
