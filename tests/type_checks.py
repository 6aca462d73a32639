"""The types that the test run checks, at a fraction of the price where no array has a shape.

For every call of every function, jaxtyping binds all arguments and checks them twice, so that names of axes agree from
one to the next. A function without such names needs only its types checked, by the same checker: a few percent of that.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, get_args, get_type_hints

import jaxtyping
from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray, TypeCheckError

checked = beartype(conf=BeartypeConf(violation_type=TypeCheckError))
with_shapes = jaxtyping.jaxtyped
LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def typed(given: Any = None, /, **how: Any) -> Any:
    """In place of `jaxtyping.jaxtyped`, with which the import hook decorates all functions and classes."""
    if given is None:
        return functools.partial(typed, **how)
    if isinstance(given, types.FunctionType):
        return _without_shapes(given) or with_shapes(given, **how)
    if isinstance(given, staticmethod | classmethod):
        return type(given)(typed(given.__func__, **how))
    if isinstance(given, property):
        return property(*(part and typed(part, **how) for part in (given.fget, given.fset, given.fdel)))
    if inspect.isclass(given) and is_dataclass(given):
        start = given.__init__
        light = None if hasattr(start, "__wrapped__") else _without_shapes(start)  # one that is inherited is checked
        if light is not None:
            given.__init__ = light
        if light is not None or hasattr(start, "__wrapped__"):
            return given
    return with_shapes(given, **how)


def _without_shapes(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function with checks of its types; None where one of them is an array with named axes.

    None also where calling it only begins something: the arguments shall be checked then, not at the first step.
    """
    hints = {name: _meant(hint, function.__globals__) for name, hint in function.__annotations__.items()}
    if function.__code__.co_flags & LATER or any(map(_has_shape, hints.values())):
        return None
    same = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    same.__kwdefaults__, same.__annotations__ = function.__kwdefaults__, hints
    same.__qualname__, same.__module__ = function.__qualname__, function.__module__
    return functools.update_wrapper(checked(same), function)


def _meant(hint: Any, names: dict[str, Any]) -> Any:
    """What a written annotation means, and anything where that is not known yet, both as jaxtyping sees it."""

    def one(value):
        del value

    one.__annotations__ = {"value": hint}
    try:
        return get_type_hints(one, names, include_extras=True)["value"]
    except Exception:
        return Any


def _has_shape(hint: Any) -> bool:
    return (inspect.isclass(hint) and issubclass(hint, AbstractArray)) or any(map(_has_shape, get_args(hint)))
