"""The output of a command: results on standard output, progress and remarks on standard error."""

from __future__ import annotations

import json
import platform
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click
from rich import progress
from rich.console import Console
from rich.table import Table
from rich.text import Text

from justright import __version__
from justright.utils.context import outermost_only, use

T = TypeVar("T")

PIPE_WIDTH = 200
LOG_EVERY_SECONDS = 30.0  # where progress goes to a file, it is one line this often


@dataclass(frozen=True)
class Terminal:
    """Prints for a person or, with `as_json`, for a program."""

    quiet: bool = False  # print nothing but the result
    verbose: bool = False  # also print versions, the folder of the caches, and how long each step took
    as_json: bool = False  # print the result as JSON and nothing else

    @property
    def is_silent(self) -> bool:
        """Whether only the result is printed."""
        return self.quiet or self.as_json

    def say(self, text: str) -> None:
        """Print a remark on standard error, unless only the result is wanted."""
        if not self.is_silent:
            console = Console(stderr=True, highlight=False)
            console.print(text, markup=False, soft_wrap=not console.is_terminal)  # lines of a file are not broken

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a part of the result as a table; left out where the result is JSON."""
        if self.as_json:
            return
        table = Table(header_style="bold")
        rows = [tuple(row) for row in rows]
        for position, name in enumerate(columns):
            is_number = bool(rows) and all(isinstance(row[position], int | float) for row in rows)
            table.add_column(name, justify="right" if is_number else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text(_cell_text(cell)) for cell in row))  # Text: brackets in a file name are no markup
        console = Console(highlight=False)
        if not console.is_terminal:  # a pipe has no width
            console = Console(highlight=False, width=PIPE_WIDTH)
        console.print(Text(title, style="bold"))  # a title of the table would be as narrow as the table
        console.print(table)

    def result(self, value: object, text: str = "") -> None:
        """Print the result: `value` as JSON for a program, `text` for a person."""
        if self.as_json:
            click.echo(json.dumps(value, indent=2, default=str))
        elif text:
            console = Console()
            if console.is_terminal:
                text = "\n".join(_wrapped(line, console.width) for line in text.split("\n"))
            click.echo(text)

    def track(self, steps: Iterable[T], total: int, what: str) -> Iterator[T]:
        """Yield `steps` and show progress: a bar, or lines where there is no screen."""
        if self.is_silent:
            yield from steps
            return
        console, done = Console(stderr=True), 0
        console.quiet = not console.is_terminal  # rich before 14.3 prints an empty line after a disabled bar
        started = last = time.monotonic()
        columns = [
            progress.SpinnerColumn(),
            *progress.Progress.get_default_columns(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[text]}"),  # such as the loss
        ]
        with progress.Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task(what, total=total, text="")
            for done, step in enumerate(steps, start=1):
                yield step
                text_of_step, seconds = getattr(step, "text", ""), time.monotonic() - started
                bar.update(task, completed=done, text=text_of_step)
                if not console.is_terminal and time.monotonic() - last > LOG_EVERY_SECONDS:
                    last, left = time.monotonic(), (total - done) * seconds / done
                    rate = f"{done / seconds:,.1f}/s, {left:,.0f} s left"
                    self.say(f"{what}: {done:,} of {total:,}, {rate}{text_of_step and f', {text_of_step}'}")
        if self.verbose:
            self.say(f"{what}: {done:,} of {total:,} in {time.monotonic() - started:.1f} s")


def _wrapped(line: str, width: int) -> str:
    """A line broken between words: paths and addresses stay in one piece, and rows of a Markdown table too."""
    if line.startswith("|"):
        return line
    return textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)


def _cell_text(cell: object) -> str:
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return str(cell)
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:.4g}"


def with_terminal(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options --json, --quiet and --verbose, and a `terminal` that follows them."""

    @click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, for other programs.")
    @click.option("--quiet", "-q", is_flag=True, help="Print the result only: no progress, no remarks.")
    @click.option("--verbose", "-v", is_flag=True, help="Also print versions, cache folder and time of each step.")
    @wraps(command)
    def run(*args: Any, as_json: bool, quiet: bool, verbose: bool, **options: Any) -> Any:
        terminal = Terminal(quiet, verbose, as_json)
        if verbose:
            from justright.utils.files import home

            terminal.say(f"justright {__version__}, Python {platform.python_version()}, caches in {home()}")
        with use(message=terminal.say, progress=outermost_only(terminal.track)):
            return command(*args, terminal=terminal, **options)

    return run
