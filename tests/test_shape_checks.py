from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from types import FunctionType
from typing import NoReturn

import beartype
import numpy as np
import pytest
from jaxtyping import Float, TypeCheckError
from tests import shape_checks
from tests.import_graph import SOURCE, source_files

from justright.geometry.transport import euclidean_distance
from justright.utils.types import Array


def functions(package: str) -> list[FunctionType]:
    """All functions that the modules of a package define."""
    found = []
    for file, of in source_files():
        if of == package and file.stem != "__main__":
            parts = file.relative_to(SOURCE).with_suffix("").parts
            name = ".".join(["justright", *(part for part in parts if part != "__init__")])
            members = vars(importlib.import_module(name)).values()
            found += [each for each in members if isinstance(each, FunctionType) and each.__module__ == name]
    return found


PACKAGES = sorted({package for _, package in source_files()})
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
PLAIN = ("str", "int", "float", "Path", "Array", "ImageSet", "bytes", "IO[Any]", "str | Place")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_function_is_checked(package):
    for function in functions(package):
        if inspect.iscoroutinefunction(function):
            continue  # jaxtyping leaves out what is async
        layers = [function]
        while hasattr(layers[-1], "__wrapped__"):
            layers.append(layers[-1].__wrapped__)
        assert any(layer.__code__.co_filename == shape_checks.__file__ for layer in layers), function


@pytest.mark.parametrize("package", PACKAGES)
def test_a_wrong_type_is_refused(package):
    stranger = type("Stranger", (), {})()
    needed = {each: [one for one in inspect.signature(each).parameters.values() if one.default is one.empty]
              for each in functions(package)}  # fmt: skip
    plain = [each for each in needed if any(one.annotation in PLAIN and one.kind in NAMED for one in needed[each])]
    assert plain
    for each in plain[:3]:
        with pytest.raises(TypeCheckError, match="Stranger"):
            each(**{one.name: stranger for one in needed[each] if one.kind in NAMED})


def test_mismatched_shapes_of_two_arguments_are_rejected():
    rows = np.zeros((3, 4))
    assert euclidean_distance(rows, rows[:2]).shape == (3, 2)
    with pytest.raises(TypeCheckError, match=r"(?s)euclidean_distance.*parameter 'a'"):
        euclidean_distance(rows[0], rows)
    with pytest.raises(TypeCheckError, match=r"(?s)euclidean_distance.*dim=4"):
        euclidean_distance(rows, rows[:, :3])


@pytest.fixture
def checked():
    return shape_checks.jaxtyped(typechecker=beartype.beartype)


def refused_calls(function, n_calls: int) -> list[int]:
    """Which of so many calls with text in place of a number are refused."""
    found = []
    for number in range(1, n_calls + 1):
        try:
            function("3")
        except TypeCheckError:
            found.append(number)
    return found


def test_first_and_some_later_calls_are_checked(checked):
    @checked
    def same(number: int):
        return number

    chosen = [*range(1, shape_checks.N_FIRST + 1), shape_checks.EVERY, 2 * shape_checks.EVERY]
    assert refused_calls(same, 2 * shape_checks.EVERY + 1) == chosen
    shape_checks.start_anew()
    assert refused_calls(same, 1) == [1]


def test_what_is_returned_is_checked_too(checked):
    @checked
    def first(rows: Float[Array, "n dim"]) -> Float[Array, " dim"]:
        return rows[:, 0]

    first(np.zeros((2, 2)))
    with pytest.raises(TypeCheckError, match="return value"):
        first(np.zeros((2, 3)))


def test_functions_that_are_made_anew_share_their_count(checked):
    def make():
        @checked
        def same(number: int):
            return number

        return same

    n_refused = sum(len(refused_calls(make(), 1)) for _ in range(2 * shape_checks.N_FIRST))
    assert n_refused == shape_checks.N_FIRST


def test_fields_of_a_dataclass_are_checked_and_counted_for_each_class(checked):
    made = [checked(dataclass(type(name, (), {"__annotations__": {"number": int}}))) for name in ("One", "Other")]
    for each in made:
        assert each(3).number == 3
        assert refused_calls(each, 20) == list(range(1, shape_checks.N_FIRST))


def test_annotations_are_read_lazily_and_once(checked, monkeypatch):
    read, types = [], shape_checks.Types.of
    monkeypatch.setattr(shape_checks.Types, "of", lambda function: read.append(function) or types(function))

    def make():
        @checked
        def same(number: int):
            return number

        return same

    same = make()
    assert read == []
    assert same(3) == make()(3) == 3
    assert len(read) == 1


def test_every_way_to_give_an_argument_is_checked(checked):
    @checked
    def every(first: int, /, second: int, *more: int, named: int = 0, **others: int):
        return first

    assert every(1, 2, 3, named=4, other=5) == every(1, second=2) == 1
    for place in range(5):
        shape_checks.start_anew()
        given = [str(number) if number == place else number for number in range(5)]
        with pytest.raises(TypeCheckError, match=f"'{place}'"):
            every(*given[:3], named=given[3], other=given[4])


def test_a_size_that_an_argument_says_is_checked(checked):
    @checked
    def rows(n: int, found: int) -> Float[Array, "{n} 2"]:
        return np.zeros((found, 2))

    assert rows(3, 3).shape == (3, 2)
    with pytest.raises(TypeCheckError, match="return value"):
        rows(3, 4)


def test_invalid_arguments_fail_as_without_checks(checked):
    @checked
    def same(number: int):
        return number

    for given, named in (((1, 2), {}), ((1,), {"other": 2}), ((), {})):
        with pytest.raises(TypeError, match=r"same\(\)"):
            same(*given, **named)


def test_what_should_never_return_and_does_is_refused(checked):
    @checked
    def never() -> NoReturn:
        return 3

    with pytest.raises(TypeCheckError, match="never"):
        never()
