"""The options of `justright discover` that read what earlier commands wrote: a number, weights, features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from justright.cli.common import FILE, STORE
from justright.errors import DataError, MissingDataError
from justright.estimation import BEST
from justright.files import parsed_json


class CategoryCount(click.ParamType):  # type: ignore[type-arg]
    """A number of categories, or a file that `justright estimate --out` wrote."""

    name = "number|file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number, or what the file says."""
        number = int(value) if str(value).isdecimal() else estimated(Path(value))
        if number < 2:
            self.fail(f"{number} categories: at least 2 are expected", param, ctx)
        return number


def estimated(file: Path) -> int:
    """The number of categories in a file of `justright estimate`: the combined estimate, or the only one."""
    if not file.is_file():
        raise MissingDataError(
            f"--k {file}: no such file", expected="a number, or a file that `justright estimate --out` wrote"
        )
    try:
        estimates = parsed_json(file.read_text(encoding="utf-8"))["estimates"]
        found = estimates[BEST if BEST in estimates else min(estimates)]["n_categories"]
        if type(found) is not int or (BEST not in estimates and len(estimates) > 1):
            raise ValueError(f"{len(estimates)} estimates")
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise DataError(
            f"{file} does not say how many categories there are: {error!r}",
            expected="a file that `justright estimate --out` wrote",
        ) from error
    return found


weights_option = click.option(
    "--weights",
    type=FILE,
    help="What to learn from, in place of a selector: a file that `justright select --out` wrote, or your own table "
    "with class_name and weight.",
)
features_option = click.option(
    "--features",
    multiple=True,
    type=STORE,
    help="Features of these images and this backbone that `justright extract` wrote, a folder or an address; may be "
    "repeated.",
)
