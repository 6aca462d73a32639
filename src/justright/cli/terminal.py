"""One terminal for all commands: results on standard output, progress and remarks on standard error."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

T = TypeVar("T")

PIPE_WIDTH = 200
QUIET_FOR_SECONDS = 1.0
"""Work shorter than this shows no bar: it would only flicker."""
LOG_EVERY_SECONDS = 30.0
"""Where progress goes to a file, a line this often says how far it is."""


@dataclass(frozen=True)
class Terminal:
    """How a command speaks: `quiet` says results only, `as_json` says them for a machine."""

    quiet: bool = False
    verbose: bool = False
    as_json: bool = False

    def say(self, text: str) -> None:
        """A remark on the way; silent when quiet or when a machine listens."""
        if not (self.quiet or self.as_json):
            Console(stderr=True, highlight=False).print(text, markup=False)

    def detail(self, text: str) -> None:
        """A remark for those who asked for more."""
        if self.verbose:
            self.say(text)

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """A result as a table; left out when a machine listens."""
        if self.as_json:
            return
        table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
        rows = [tuple(row) for row in rows]
        for position, name in enumerate(columns):
            is_number = bool(rows) and all(isinstance(row[position], int | float) for row in rows)
            table.add_column(name, justify="right" if is_number else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text(_plain(cell)) for cell in row))  # Text: brackets in a file name are no markup
        console = Console(highlight=False)
        if not console.is_terminal:  # a pipe has no width: give the table the room it wants
            console = Console(highlight=False, width=PIPE_WIDTH)
        console.print(table)

    def result(self, value: object, text: str = "") -> None:
        """The outcome: `value` as JSON for a machine, `text` for a person."""
        if self.as_json:
            click.echo(json.dumps(value, indent=2, default=str))
        elif text:
            click.echo(text)

    def track(self, steps: Iterable[T], total: int, what: str) -> Iterator[T]:
        """Pass `steps` on and show a bar with rate and time left once it takes a while."""
        if self.quiet or self.as_json:
            yield from steps
            return
        console = Console(stderr=True)
        if not console.is_terminal:
            yield from self._track_in_a_log(steps, total, what)
            return
        rate = TextColumn("{task.fields[rate]}")
        said = TextColumn("{task.fields[said]}")
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, said)
        started = time.monotonic()
        with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
            task = bar.add_task(what, total=total, rate="", said="", visible=False)
            for done, step in enumerate(steps, start=1):
                yield step
                seconds = time.monotonic() - started
                if seconds > QUIET_FOR_SECONDS:
                    rate_text = f"{done / seconds:,.0f}/s" if done > seconds else f"{seconds / done:,.1f} s each"
                    bar.update(task, completed=done, rate=rate_text, said=getattr(step, "said", ""), visible=True)

    def _track_in_a_log(self, steps: Iterable[T], total: int, what: str) -> Iterator[T]:
        last = started = time.monotonic()
        for done, step in enumerate(steps, start=1):
            yield step
            if (now := time.monotonic()) - last > LOG_EVERY_SECONDS:
                last = now
                left = (total - done) * (now - started) / done
                said = f", {step.said}" if hasattr(step, "said") else ""
                self.say(f"{what}: {done:,} of {total:,}, {done / (now - started):,.1f}/s, {left:,.0f} s left{said}")


def _plain(cell: object) -> str:
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return str(cell)
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:.4g}"


def with_terminal(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of the terminal; it receives a `terminal` argument."""

    @click.option("--quiet", "-q", is_flag=True, help="Say the result only.")
    @click.option("--verbose", "-v", is_flag=True, help="Say more on the way.")
    @click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
    @wraps(command)
    def with_voice(*args: Any, quiet: bool, verbose: bool, as_json: bool, **options: Any) -> Any:
        return command(*args, terminal=Terminal(quiet, verbose, as_json), **options)

    return with_voice
