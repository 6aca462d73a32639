"""The command line as a whole: what every help text must have, and how errors are shown."""

from __future__ import annotations

import errno
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from justright.cli import COMMANDS, main, message_of
from justright.utils.errors import JustrightError


def every_command() -> list[tuple[str, click.Command]]:
    """All commands and their subcommands, by name."""
    context, result = click.Context(main), []
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        result.append((name, command))
        if isinstance(command, click.Group):
            result += [(f"{name} {sub}", each) for sub, each in command.commands.items()]
    return result


NAMES = [name for name, _ in every_command()]
OPTIONS = [
    (name, option) for name, command in every_command() for option in command.params if isinstance(option, click.Option)
]


def help_of(name: str) -> str:
    """The help text in a terminal of 80 columns. Click leaves two of them free, but its test runner does not."""
    done = CliRunner().invoke(main, [*name.split(), "--help"], terminal_width=78)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(("name", "option"), OPTIONS, ids=[f"{name} {option.opts[0]}" for name, option in OPTIONS])
def test_every_option_has_help_of_three_words_or_more(name, option):
    assert option.help, f"{name} {option.opts[0]} has no help"
    assert len(option.help.split()) >= 3, f"{name} {option.opts[0]}: {option.help!r} does not say what it does"


@pytest.mark.parametrize("name", ["", *NAMES])
def test_help_fits_into_80_columns(name):
    long = [line for line in help_of(name).splitlines() if len(line) > 80]
    assert long == []


@pytest.mark.parametrize("name", NAMES)
def test_first_help_sentence_fits_the_command_list(name):
    above, _, own = name.rpartition(" ")
    listed = help_of(above).partition("\nCommands:\n")[2]
    (line,) = [line for line in listed.splitlines() if line.startswith(f"  {own} ")]
    assert not line.endswith("..."), line
    assert len(line.split()) >= 4


@pytest.mark.parametrize("name", ["discover", "extract"])
def test_every_heading_and_table_of_a_help_text_is_shown(name):
    command = dict(every_command())[name]
    text = help_of(name)
    for title in [*command.headings.values(), *(title for title, rows in command.help_tables().items() if rows)]:
        assert f"\n{title}:\n" in text


def run_with(error: BaseException, monkeypatch) -> object:
    @click.command()
    def failing() -> None:
        raise error

    monkeypatch.setattr(type(main), "get_command", lambda *_: failing)
    return CliRunner().invoke(main, ["failing"])


def test_user_errors_show_one_message(monkeypatch):
    done = run_with(JustrightError("three eyes", expected="two"), monkeypatch)
    assert (done.exit_code, done.stderr) == (1, "Error: three eyes\nExpected: two\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("discoer", "No such command 'discoer'. Did you mean discover?"),
        ("cluster-my-photos", "No such command 'cluster-my-photos'."),
        ("settings simcd", "Invalid value for 'METHOD': 'simcd' is not one of"),
        ("discover --target a --out b --minutes 5m", "'5m' is not a valid number."),
        ("discover --target a --out b --epochs 1.5", "'1.5' is not a valid integer."),
    ],
)
def test_mistyped_words_are_named(words, message):
    done = CliRunner().invoke(main, words.split())
    assert done.exit_code == 2
    assert message in done.output


def test_unwritable_output_shows_one_message(monkeypatch):
    done = run_with(PermissionError(errno.EACCES, "Permission denied", "/attic/k.json"), monkeypatch)
    assert done.exit_code == 1
    assert "/attic/k.json cannot be written or read: Permission denied" in done.stderr
    assert "name another place" in done.stderr


def test_unexpected_errors_keep_their_traceback(monkeypatch):
    done = run_with(ZeroDivisionError("a bug"), monkeypatch)
    assert isinstance(done.exception, ZeroDivisionError)


def test_interrupt_has_its_own_exit_code(monkeypatch):
    done = run_with(KeyboardInterrupt(), monkeypatch)
    assert done.exit_code == 130
    assert "Stopped. Repeat the command to continue: finished work is kept." in done.stderr


def test_full_disk_names_the_file_and_how_to_resume():
    message = message_of(OSError(errno.ENOSPC, "No space left on device", "/run/tuned.npy")).splitlines()
    assert message[0] == "/run/tuned.npy cannot be written: No space left on device"
    assert message[1].startswith("Try: free some disk space (`justright cache list`")
    assert message[1].endswith("repeat the command: finished work is kept")


def test_size_limit_without_a_file_name_is_reported():
    message = message_of(OSError(errno.EFBIG, "File too large"))
    assert message.startswith("a file cannot be written: File too large\nTry: allow larger files")


def test_read_errors_are_named_and_no_message_is_empty():
    denied = PermissionError(errno.EACCES, "Permission denied", "/attic")
    assert message_of(denied) == "/attic cannot be written or read: Permission denied\nTry: name another place"
    assert message_of(OSError("odd")).startswith("odd\n")
    assert message_of(OSError()).startswith("OSError\n")


def completions(*words: str) -> list[str]:
    """The completions of the last word in bash."""
    variables = {"_JUSTRIGHT_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(["justright", *words])}
    done = CliRunner().invoke(main, [], prog_name="justright", env=variables | {"COMP_CWORD": str(len(words))})
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_shell_completes_commands_options_and_values():
    assert completions("dis") == ["discover"]
    assert completions("data", "s") == ["show", "split"]
    assert completions("discover", "--pool-r") == ["--pool-role"]
    assert completions("discover", "--method", "sim") == ["simgcd"]
    assert completions("select", "--selector", "b") == ["bins", "beta"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_docs_have_completion_for_every_shell(shell):
    docs = (Path(__file__).parents[2] / "docs" / "howto" / "stages.md").read_text(encoding="utf-8")
    assert f"_JUSTRIGHT_COMPLETE={shell}_source justright" in docs
    done = CliRunner().invoke(main, [], prog_name="justright", env={"_JUSTRIGHT_COMPLETE": f"{shell}_source"})
    assert f"_JUSTRIGHT_COMPLETE={shell}_complete" in done.stdout
