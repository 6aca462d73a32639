"""The types that the test run checks: none is lost where no array has a shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import beartype
import numpy as np
import pytest
from jaxtyping import Float, TypeCheckError
from tests.type_checks import typed

from justright.evaluation import evaluate
from justright.parallel import in_blocks
from justright.report.page_images import SheetOrder, spread
from justright.types import Array, Features

check = typed(typechecker=beartype.beartype)


@check
def plain(x: int, *more: str, known: Later | None = None) -> list[int]:
    return [x] if x else ["none"]


@check
def counted(n: int) -> Iterator[int]:
    yield from range(n)


@check
def paired(x: Float[Array, " rows"], y: Float[Array, " rows"]) -> None:
    pass


@check
def nested(pairs: list[tuple[str, Features]] | None) -> None:
    pass


@check
@dataclass(frozen=True)
class Point:
    x: float
    name: str = ""


@check
class Named(Point):
    @check
    @property
    def doubled(self) -> float:
        return "not a number" if self.name else 2 * self.x

    @check
    @classmethod
    def at(cls, x: int) -> Named:
        return cls(float(x))


class Later:
    """Not known where it is first named."""


def test_what_fits_passes_and_functions_stay_what_they_are():
    assert plain(1, "a", known=Later()) == [1]
    assert list(counted(2)) == [0, 1]
    paired(np.ones(2), np.ones(2))
    nested([("a", np.ones((2, 3)))])
    assert Named.at(2).doubled == 4.0
    assert plain.__name__ == "plain"
    assert plain.__annotations__["return"] == "list[int]"


@pytest.mark.parametrize(
    "call",
    [
        lambda: plain("1"),
        lambda: plain(1, 2),
        lambda: plain(0),
        lambda: counted(2.5),
        lambda: paired(np.ones(2), np.ones(3)),
        lambda: nested([("a", np.ones(2))]),
        lambda: Point("1"),
        lambda: Point(1.0, name=3),
        lambda: Named(None),
        lambda: Named.at("1"),
        lambda: Named(1.0, "a").doubled,
    ],
)
def test_what_does_not_fit_is_refused(call):
    with pytest.raises(TypeCheckError):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: next(in_blocks(np.arange(3), size="2")),
        lambda: spread(np.ones((2, 2), dtype=int), 1),
        lambda: SheetOrder(np.arange(2), 3.5, 1, ""),
        lambda: evaluate(np.arange(3), np.arange(4), np.ones(3, dtype=bool)),
    ],
)
def test_the_package_itself_is_checked(call):
    with pytest.raises(TypeCheckError):
        call()
