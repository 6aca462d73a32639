"""Checks of shapes and types at run time, cheap enough to hold in every room.

The option `--jaxtyping-packages` puts `jaxtyping.jaxtyped` on every function of justright. It checks each call in full,
which took half of the time of rooms that call small functions often, and prepares for that when the function is
defined, which each process paid for thousands of functions that it never calls. Here the calls to check are chosen,
and what is checked of a function is read when it is first called: its types, of which thousands of functions share
few hundred. Each value is compared with its type once; a call that is refused goes to `jaxtyping.jaxtyped`, which
explains it.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any, ForwardRef, Literal, NoReturn, TypeVar, Unpack, get_args, get_origin, get_type_hints

import jaxtyping
from beartype.door import is_bearable

N_FIRST, EVERY = 4, 100
"""Of each function, in each test: so many calls are checked, and every so-manyth after that."""

_jaxtyped = jaxtyping.jaxtyped
_own_sizes = _jaxtyped("context")  # a size such as "n" is the same in one call, and may be another in the next
_n_calls: Counter[int] = Counter()  # by code: functions in functions are made anew for each call of the outer one
_types: dict[CodeType, Types] = {}
_known: dict[tuple[int, Any], Any] = {}  # most types are written again and again


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


def _choosing(typechecker: Callable[..., Any], function: FunctionType) -> Callable[..., Any]:
    code = function.__code__
    key, prepared = id(code), None

    @functools.wraps(function)
    def choose(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        nonlocal prepared
        _n_calls[key] = n_calls = _n_calls[key] + 1
        if n_calls > N_FIRST and n_calls % EVERY:
            return function(*args, **kwargs)
        types = _types.get(code)
        if types is None:
            types = _types[code] = Types.of(function)
        if not types.are_plain:
            prepared = prepared or _jaxtyped(function, typechecker=typechecker)
            return prepared(*args, **kwargs)
        with _own_sizes:
            if not types.take(args, kwargs):
                _refuse(typechecker, function, args, kwargs)
            result = function(*args, **kwargs)
            if not types.give(result):
                _refuse(typechecker, function, args, kwargs, result)
        return result

    return choose


@dataclass(frozen=True)
class Types:
    """What a function takes and gives; whatever has no type, or one that cannot be read, is not here.

    Parameters:
        places: by place, the type of an argument that may be given without its name; None: anything.
        rest: of more arguments without a name.
        names: by name.
        other_names: of more arguments with a name.
        result: in a tuple of one, of what is returned; empty: anything.
        are_plain: no shape is said by the value of an argument, and no name stands for a type: these jaxtyping reads.
    """

    places: tuple[Any, ...]
    rest: Any
    names: dict[str, Any]
    other_names: Any
    result: tuple[Any, ...]
    are_plain: bool

    @classmethod
    def of(cls, function: FunctionType) -> Types:
        found = _read(function)
        parameters = inspect.signature(function).parameters.values()
        kinds: dict[Any, list[str]] = {}
        for each in parameters:
            kinds.setdefault(each.kind, []).append(each.name)

        def named(*wanted: Any) -> list[str]:
            return [name for kind in wanted for name in kinds.get(kind, [])]

        p = inspect.Parameter
        rest, other_names = (found.get("".join(named(kind))) for kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD))
        by_name = named(p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        return cls(
            tuple(found.get(name) for name in named(p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)),
            rest,
            {name: found.get(name) for name in by_name},
            other_names,
            (found["return"],) if "return" in found else (),
            all(map(_is_plain, found.values())) and "{" not in "".join(map(str, function.__annotations__.values())),
        )

    def take(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the arguments are of their types."""
        for place, value in enumerate(args):
            wanted = self.places[place] if place < len(self.places) else self.rest
            if wanted is not None and not _fits(value, wanted):
                return False
        for name, value in kwargs.items():
            wanted = self.names.get(name, self.other_names)
            if wanted is not None and not _fits(value, wanted):
                return False
        return True

    def give(self, result: Any) -> bool:
        """Whether the result is of its type."""
        return not self.result or (self.result[0] is not NoReturn and _fits(result, self.result[0]))


def _fits(value: Any, wanted: Any) -> bool:
    return isinstance(value, wanted) if type(wanted) is type else is_bearable(value, wanted)


def _read(function: FunctionType) -> dict[str, Any]:
    """By name, the types that are written at a function; without options, which it checks by itself."""
    found = {name: _meant(each, function.__globals__) for name, each in function.__annotations__.items()}
    return {name: each for name, each in found.items() if each is not Any and get_origin(each) is not Unpack}


def _meant(written: Any, names: dict[str, Any]) -> Any:
    """A type as it is written in a module whose names these are."""
    key = id(names), written
    if key not in _known:
        try:
            read = get_type_hints(SimpleNamespace(__annotations__={"it": written}), names, include_extras=True)
        except Exception:  # it names what only a type checker imports, or what is made in a function; so does jaxtyping
            read = {"it": Any}
        _known[key] = read["it"]
    return _known[key]


def _is_plain(wanted: Any) -> bool:
    if isinstance(wanted, list):  # the arguments of a callable
        return all(map(_is_plain, wanted))
    if isinstance(wanted, TypeVar):
        return _is_plain(wanted.__bound__)
    return get_origin(wanted) is Literal or (
        not isinstance(wanted, str | ForwardRef) and all(map(_is_plain, get_args(wanted)))
    )


def _refuse(
    typechecker: Callable[..., Any], function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any], *result: Any
) -> NoReturn:
    """Say what is wrong, as jaxtyping says it, without calling the function again."""
    __tracebackhide__ = True

    def again(*args: Any, **kwargs: Any) -> Any:
        return result[0] if result else None

    stand_in: Any = FunctionType(again.__code__, function.__globals__, closure=again.__closure__)
    stand_in.__signature__ = inspect.signature(function)
    for name in ("__name__", "__qualname__", "__module__"):
        setattr(stand_in, name, getattr(function, name))
    if not result:
        stand_in.__signature__ = stand_in.__signature__.replace(return_annotation=Any)
    _jaxtyped(stand_in, typechecker=typechecker)(*args, **kwargs)
    raise jaxtyping.TypeCheckError(f"{function.__qualname__}: {args}, {kwargs}, return value {result}")
