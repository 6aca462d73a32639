"""Shared by commands: options, types of paths, and help texts with headings and tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, get_args

import click

from justright.discovery.methods import METHODS
from justright.runs.options import FLAGS, option_help, option_types
from justright.runs.spec import AUTO
from justright.utils.errors import JustrightError
from justright.utils.files import expect_writable, parsed_json
from justright.utils.parallel import ENGINES, Engine, import_ray
from justright.utils.registry import Registry
from justright.utils.remote import place_of
from justright.utils.settings import Range

PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
EXISTING_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)


class Number(click.FloatRange):
    """A number in a range; help and errors call it a number."""

    name = "number"


class Integer(click.IntRange):
    """A whole number in a range; help and errors call it an integer."""

    name = "integer"


class SettingValue(click.ParamType):  # type: ignore[type-arg]
    """A number or text, or one of the words of a setting, within its range."""

    def __init__(self, kind: type, allowed: Range):
        self.kind, self.allowed = kind, allowed
        self.name = "|".join([*allowed.choices, {float: "number", int: "integer", str: "text"}[kind]])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert and validate the value."""
        try:
            converted = value if value in self.allowed.choices else self.kind(value)
        except ValueError:
            self.fail(f"{value!r} is not a valid {self.name}.", param, ctx)
        if not self.allowed.allows(converted):
            self.fail(f"{value} is not {self.allowed.expected.removesuffix(', or None')}.", param, ctx)
        return converted


class NameOf(click.Choice[str]):
    """A name in a registry, including those that are added later; or one of some more names."""

    def __init__(self, family: Iterable[str], *more: str):
        self.family, self.more, self.case_sensitive = family, more, True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """All names at the moment."""
        return (*self.more, *self.family)


def value_type(kind: Any, allowed: Range) -> click.ParamType:  # type: ignore[type-arg]
    """The type of an option, from the annotation of a setting and its range."""
    kinds = get_args(kind) or (kind,)
    if allowed.choices and not {float, int} & {*kinds}:
        return NameOf(allowed.choices)
    if Path in kinds:
        return PATH
    return SettingValue(next(type_ for type_ in (float, int, str) if type_ in kinds), allowed)


class Output(click.Path):
    """A file or folder that the command writes at its end; raises at the start if it cannot be written.

    Parameters:
        endings: what the name of a file must end in, such as .svg; none allows any.
        kind: "file", "folder", or "any" where either may be written.
    """

    def __init__(self, *endings: str, kind: str = "file"):
        super().__init__(path_type=Path, file_okay=kind != "folder", dir_okay=kind != "file")
        self.endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; raises if it cannot be written."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        expect_ending(path, self.endings, f"{param.opts[0]} {path}" if param else str(path))
        expect_writable(path)
        return path


def expect_ending(path: Path, endings: Sequence[str], problem: str) -> None:
    """Raise if the name of a file does not end in one of these; no endings allow any."""
    if endings and path.suffix.lower() not in endings:
        raise JustrightError(f"{problem} has another ending", expected=f"a name that ends in {', '.join(endings)}")


OUT_FILE, OUT_FOLDER, OUT_SVG = Output(), Output(kind="folder"), Output(".svg")
SHARE = Number(0, 1)
COUNT = Integer(1)
STORE = click.types.FuncParamType(place_of)  # features; a path would lose a slash of an address such as s3://bucket/x
STORE.name = "folder or address"

SOURCES = {  # what `open_images` takes, for the help of commands that open images
    "FOLDER": "a folder with one folder per class",
    "FILE.csv, FILE.parquet": "a table with a row per image and a column path; also label, class_name",
    "FILE.zip": "images in folders, or images and one CSV file that lists them",
    "NAME:FOLDER": "a known data set, such as cub:DATA/CUB_200_2011; see `justright data --list`",
    "glyphs": "characters that the package draws itself",
}


def _installed(ctx: click.Context, param: click.Parameter, engine: str) -> str:
    if engine == "ray":
        import_ray()  # raises if it is missing
    return engine


def opened_engine(name: str, n_workers: int | None = None) -> AbstractContextManager[Engine | None]:
    """The engine of --engine, for a `with` block; None for local, where every part of the work has its own threads."""
    return nullcontext() if name == "local" else ENGINES[name](n_workers)


def read_settings(assignments: Iterable[str]) -> dict[str, Any]:
    """NAME=VALUE as a dictionary; a value is JSON or None, True, False where it can be read as such, else text."""
    settings: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise JustrightError(f"--set {assignment} has no value", expected="NAME=VALUE, such as --set views=8")
        try:
            value = parsed_json(text)
        except ValueError:
            value = {"None": None, "True": True, "False": False}.get(text, text)
        settings[name.replace("-", "_")] = value
    return settings


TRAINING = ("method", "scale", "epochs", "settings", "minutes", "held_out", "n_seeds")
SPECIAL: dict[str, dict[str, Any]] = {  # what `runs.options` does not say of an option
    "k": {"type": str, "metavar": "NUMBER|FILE"},
    "method": {"type": NameOf(METHODS, AUTO)},
    "truth": {"type": FILE},
    "weights": {"type": FILE},
    "engine": {
        "callback": _installed,
        "help": f"Where the work is done. {'; '.join(f'{name}: {ENGINES.about(name)}' for name in ENGINES)}.",
    },
    "settings": {
        "multiple": True,
        "type": str,
        "metavar": "NAME=VALUE",
        "callback": lambda ctx, param, values: read_settings(values),
        "help": "Change any other setting; may be repeated. `justright settings METHOD` lists them.",
    },
}


def run_options(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command options of `justright.discover`, with type, default and help as `runs.options` has them."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for name in reversed(names):
            option = option_types()[name]
            flag = f"--{FLAGS.get(name, name).replace('_', '-')}"
            more = {"default": option.default, "help": option_help(name)} | SPECIAL.get(name, {})
            if option.kind is bool:
                more["is_flag"] = True
            elif "type" not in more:
                more["type"] = value_type(option.kind, option.allowed)
            command = click.option(flag, name, **more)(command)
        return command

    return decorate


class Command(click.Command):
    """A command whose help has headings for its options, and tables that explain names.

    An option may bring its own heading, as an attribute `heading`.

    Parameters:
        headings: the title of each section, by the name of the option that the section starts with.
        tables: tables of names and their meanings, or registries, by title.
    """

    def __init__(self, *args: Any, headings: Any = None, tables: Any = None, **kwargs: Any):
        self.headings: Mapping[str, str] = headings or {}
        self.tables: Mapping[str, Mapping[str, Any]] = tables or {}
        super().__init__(*args, **kwargs)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections, then the tables."""
        sections: dict[str, list[tuple[str, str]]] = {}
        title = "Options"
        for param in self.get_params(ctx):
            title = self.headings.get(param.name or "", title)
            record = param.get_help_record(ctx)
            if record and isinstance(param, click.Option):
                sections.setdefault(getattr(param, "heading", title), []).append(record)
        for title, rows in (sections | self.help_tables()).items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def help_tables(self) -> dict[str, list[tuple[str, str]]]:
        """The rows of each table, by its title."""
        return {
            title: [(name, family.about(name) if isinstance(family, Registry) else family[name]) for name in family]
            for title, family in self.tables.items()
        }
