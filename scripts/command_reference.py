"""Hook of mkdocs: writes docs/reference/cli.md from the commands, as `--help` shows them.

Descriptions become text, examples become code, and options keep their headings and tables.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

import click

from justright.cli import main

PAGE = "reference/cli.md"
WIDTH = 80


def on_page_markdown(markdown: str, page, **_) -> str:
    """Add every command to the page of the command line; called by mkdocs for each page."""
    if page.file.src_uri != PAGE:
        return markdown
    context = click.Context(main, info_name="justright", max_content_width=WIDTH, terminal_width=WIDTH)
    return "\n".join([markdown, *_command(context, 1)])


def _command(context: click.Context, level: int) -> Iterator[str]:
    """The section of a command, then those of its subcommands."""
    command = context.command
    if context.parent is not None:
        yield f"{'#' * level} {context.command_path}\n"
    yield _help_text(context, command.format_usage)
    yield from _description(command.help or "")
    yield _help_text(context, command.format_options)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            yield from _command(click.Context(below, context, name, max_content_width=WIDTH), level + 1)


def _description(text: str) -> Iterator[str]:
    """Paragraphs as text. Those after a line with \\b, which click leaves as they are, as code."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        is_verbatim = paragraph.startswith("\b")
        yield _code(paragraph.removeprefix("\b\n")) if is_verbatim else paragraph + "\n"


def _help_text(context: click.Context, write: Callable[[click.Context, click.HelpFormatter], None]) -> str:
    """A part of the help, as click formats it."""
    formatter = context.make_formatter()
    write(context, formatter)
    return _code(formatter.getvalue())


def _code(text: str) -> str:
    return f"```text\n{text.strip()}\n```\n"
