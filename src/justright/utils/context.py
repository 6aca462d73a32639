"""What all stages of one piece of work share: how progress and messages are shown, where work runs, where the cache is.

Example:
    with use(progress=progress_bar, engine=engine):
        extract(images, backbone, out)  # shows a progress bar, computes on the engine
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from justright.utils.progress import Track, silent

T = TypeVar("T")


@dataclass(frozen=True)
class Context:
    """Shared by all calls below a `with use(...)`. None of it changes a result, so it is no argument of functions."""

    progress: Track = silent
    message: Callable[[str], None] = logging.getLogger("justright").info  # shows one sentence to the user
    engine: Any = None  # where features, views and weights are computed; None: threads of this process
    tensorboard: bool = False  # whether trainings also write their curves for TensorBoard
    cache: Path | None = None  # folder of the cache, in place of JUSTRIGHT_HOME
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
