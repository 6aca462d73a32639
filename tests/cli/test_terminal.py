from __future__ import annotations

import json
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner

from justright import __version__
from justright.cli import terminal as module
from justright.cli.terminal import Terminal, with_terminal


@pytest.mark.parametrize("silent", [Terminal(quiet=True), Terminal(as_json=True), Terminal(True, True, True)])
def test_quiet_prints_only_the_result(silent, capsys, monkeypatch):
    monkeypatch.setattr(module, "LOG_EVERY_SECONDS", -1.0)
    silent.say("a remark")
    assert list(silent.track("abc", 3, "letters")) == ["a", "b", "c"]
    assert capsys.readouterr() == ("", "")


def test_remarks_are_printed_to_standard_error_with_brackets(capsys):
    Terminal().say("photo[copy].jpg")
    assert capsys.readouterr() == ("", "photo[copy].jpg\n")


def test_long_lines_break_between_words_on_a_screen_only(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    lines = "a remark of several words that is long\nWritten: /a/path/that/is/longer/than-the/line.csv"
    Terminal().result({}, lines)
    Terminal().say(lines)
    Terminal().table("A title that is longer than its table", ("k",), [(1,)])
    out, err = capsys.readouterr()
    assert (out.splitlines()[:2], err) == (lines.split("\n"), f"{lines}\n")
    assert out.splitlines()[2] == "A title that is longer than its table"
    monkeypatch.setenv("FORCE_COLOR", "1")
    Terminal().result({}, lines)
    wrapped = "a remark of several words that\nis long\nWritten:\n/a/path/that/is/longer/than-the/line.csv\n"
    assert capsys.readouterr().out == wrapped
    Terminal().result({}, "| a row of Markdown | is | not | broken |")
    assert capsys.readouterr().out.count("\n") == 1


def test_result_is_text_or_json(capsys):
    Terminal().result({"k": 3}, "K = 3")
    assert capsys.readouterr().out == "K = 3\n"
    Terminal(as_json=True).result({"k": 3}, "K = 3")
    assert json.loads(capsys.readouterr().out) == {"k": 3}


def test_table_shortens_numbers_and_is_left_out_of_json(capsys):
    rows = [("[bold]", 12345, 0.123456, True)]
    Terminal().table("Title", ("name", "count", "share", "flag"), rows)
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("Title", "[bold]", "12,345", "0.1235", "True"))
    Terminal(as_json=True).table("Title", ("name", "count", "share", "flag"), rows)
    assert capsys.readouterr().out == ""


def test_progress_is_logged_in_lines_without_a_screen(capsys, monkeypatch):
    monkeypatch.setattr(module, "LOG_EVERY_SECONDS", -1.0)
    steps = [SimpleNamespace(text="loss 0.5"), SimpleNamespace(text="loss 0.4")]
    assert list(Terminal().track(steps, 2, "epochs")) == steps
    lines = capsys.readouterr().err.splitlines()
    assert [line.startswith(f"epochs: {n} of 2, ") for n, line in enumerate(lines, start=1)] == [True, True]
    assert lines[1].endswith("0 s left, loss 0.4")


def test_progress_is_a_bar_on_a_screen(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert list(Terminal().track(range(3), 3, "images")) == [0, 1, 2]
    assert "3/3" in capsys.readouterr().err


def test_verbose_shows_the_time_of_each_step(capsys):
    assert list(Terminal(verbose=True).track(range(3), 3, "images")) == [0, 1, 2]
    assert capsys.readouterr().err.startswith("images: 3 of 3 in ")


def test_options_of_a_command_configure_its_terminal(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    got = []

    @click.command()
    @with_terminal
    def command(terminal: Terminal) -> None:
        got.append(terminal)

    for words in ([], ["-q"], ["--json"]):
        assert CliRunner().invoke(command, words).output == ""
    message = CliRunner().invoke(command, ["-v"]).stderr.replace("\n", "")
    assert got == [Terminal(), Terminal(quiet=True), Terminal(as_json=True), Terminal(verbose=True)]
    assert f"justright {__version__}" in message
    assert str(tmp_path) in message, "the folder of the caches"
