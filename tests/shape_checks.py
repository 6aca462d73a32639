"""Checks of shapes and types at run time, cheap enough to hold in every room.

The option `--jaxtyping-packages` puts `jaxtyping.jaxtyped` on every function of justright. It checks each call in full,
which took half of the time of rooms that call small functions often, and prepares for that when the function is
defined, which each process paid for thousands of functions that it never calls. Here a function is prepared when it is
first called, and the calls to check are chosen.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

import jaxtyping

N_FIRST, EVERY = 4, 100
"""Of each function, in each test: so many calls are checked, and every so-manyth after that."""

_jaxtyped = jaxtyping.jaxtyped
_n_calls: Counter[int] = Counter()  # by code: functions in functions are made anew for each call of the outer one


def install() -> None:
    """Let what is imported from now on be checked so."""
    jaxtyping.jaxtyped = jaxtyped


def start_anew() -> None:
    """Another test begins."""
    _n_calls.clear()


def jaxtyped(*, typechecker: Callable[..., Any]) -> Callable[..., Any]:
    """In place of `jaxtyping.jaxtyped`, as the option uses it."""
    return functools.partial(_with_checks, typechecker)


def _with_checks(typechecker: Callable[..., Any], checked: Any) -> Any:
    if not inspect.isclass(checked):
        return _choosing(typechecker, checked)
    if is_dataclass(checked) and not hasattr(checked.__init__, "__wrapped__"):  # a written or inherited one has it
        checked.__init__ = _choosing(typechecker, checked.__init__)
    return checked


def _choosing(typechecker: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    code, prepared = id(function.__code__), None

    @functools.wraps(function)
    def choose(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        nonlocal prepared
        _n_calls[code] = n_calls = _n_calls[code] + 1
        if n_calls > N_FIRST and n_calls % EVERY:
            return function(*args, **kwargs)
        if prepared is None:
            prepared = _jaxtyped(function, typechecker=typechecker)
        return prepared(*args, **kwargs)

    return choose
