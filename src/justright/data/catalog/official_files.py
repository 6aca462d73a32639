"""The files that data sets keep their lists in: lines of text, pairs of key and value, MATLAB variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from justright.data.catalog.layouts import missing
from justright.errors import DataError
from justright.types import Labels


def read_lines(file: Path) -> list[str]:
    """The lines of a text file; empty ones at its end do not count."""
    try:
        return file.read_text(encoding="utf-8-sig").rstrip().split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not text: {error}", expected="UTF-8") from error


@dataclass(frozen=True)
class Listing:
    """An official list file: a key and a value a line, in the order of the file."""

    file: Path
    keys: list[str]
    values: list[str]

    @classmethod
    def read(cls, file: Path) -> Listing:
        """Cut each line at its first space; the value keeps the spaces it has."""
        values: dict[str, str] = {}
        for number, line in enumerate(read_lines(file), start=1):
            pair = line.split(maxsplit=1)
            if len(pair) != 2:
                raise DataError(f"{file}, line {number}: {line!r}", expected="a key, a space and a value")
            if pair[0] in values:
                raise DataError(f"{file}, line {number}: {pair[0]} stands there twice", expected="each key once")
            values[pair[0]] = pair[1].rstrip()
        return cls(file, list(values), list(values.values()))

    def at(self, row: int) -> str:
        """Where a row stands, for a message."""
        return f"{self.file}, line {row + 1}"

    def numbers(self, low: int, high: int) -> Labels:
        """The values as whole numbers between two bounds."""
        return whole_numbers(self.values, low, high, self.at)

    def rows_of(self, other: Listing) -> Labels:
        """For each key of `other` the row here; both lists must name the same keys, in any order."""
        row_of = {key: row for row, key in enumerate(self.keys)}
        known = set(other.keys)
        for row, key in enumerate(self.keys):
            if key not in known:
                raise DataError(f"{self.at(row)}: {key} is not in {other.file.name}", expected=f"a key of {other.file}")
        for row, key in enumerate(other.keys):
            if key not in row_of:
                raise DataError(f"{other.at(row)}: {key} is not in {self.file}", expected="each key in both lists")
        return np.array([row_of[key] for key in other.keys], dtype=np.int64)


def whole_numbers(values: Iterable[Any], low: int, high: int, at: Callable[[int], str]) -> Labels:
    """Values as integers; DataError for the first that is none or lies outside the bounds, `at` says where it is."""
    numbers = []
    for row, value in enumerate(values):
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if not (low <= number <= high and number.is_integer()):
            raise DataError(f"{at(row)}: {value}", expected=f"a whole number from {low} to {high}")
        numbers.append(int(number))
    return np.array(numbers, dtype=np.int64)


def read_mat(file: Path, *names: str) -> list[Any]:
    """Variables of a MATLAB file, each as an array with one axis."""
    from scipy.io import loadmat  # slow to import, and most commands read no MATLAB file

    if not file.is_file():
        raise missing(file)
    try:
        content = loadmat(file, squeeze_me=True, variable_names=names)
    except Exception as error:  # scipy lets out whatever a damaged byte happens to cause
        raise DataError(f"{file} cannot be read: {error}", expected="a MATLAB file, version 5 to 7") from error
    for name in names:
        if name not in content:
            raise DataError(f"{file} has no variable {name}", expected=f"the variables {', '.join(names)}")
        if not np.size(content[name]):
            raise DataError(f"{file}: {name} is empty", expected="at least one entry")
    return [np.atleast_1d(content[name]) for name in names]
