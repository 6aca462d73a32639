from __future__ import annotations

import json
import time
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


def test_remarks_go_to_standard_error_and_keep_their_brackets(capsys):
    Terminal().say("photo[copy].jpg")
    assert capsys.readouterr() == ("", "photo[copy].jpg\n")


def test_a_result_is_text_for_a_person_and_json_for_a_program(capsys):
    Terminal().result({"k": 3}, "K = 3")
    assert capsys.readouterr().out == "K = 3\n"
    Terminal(as_json=True).result({"k": 3}, "K = 3")
    assert json.loads(capsys.readouterr().out) == {"k": 3}


def test_a_table_shows_numbers_shortened_and_is_left_out_of_json(capsys):
    rows = [("[bold]", 12345, 0.123456, True)]
    Terminal().table("Title", ("name", "count", "share", "flag"), rows)
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("Title", "[bold]", "12,345", "0.1235", "True"))
    Terminal(as_json=True).table("Title", ("name", "count", "share", "flag"), rows)
    assert capsys.readouterr().out == ""


def test_without_a_screen_progress_is_a_line_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr(module, "LOG_EVERY_SECONDS", -1.0)
    steps = [SimpleNamespace(text="loss 0.5"), SimpleNamespace(text="loss 0.4")]
    assert list(Terminal().track(steps, 2, "epochs")) == steps
    lines = capsys.readouterr().err.splitlines()
    assert [line.startswith(f"epochs: {n} of 2, ") for n, line in enumerate(lines, start=1)] == [True, True]
    assert lines[1].endswith("0 s left, loss 0.4")


def test_on_a_screen_progress_is_a_bar(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(module, "NO_BAR_SECONDS", -1.0)
    assert list(Terminal().track(range(3), 3, "images")) == [0, 1, 2]
    assert "3/3" in capsys.readouterr().err


def test_a_long_first_step_shows_the_bar_before_it_is_done(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(module, "NO_BAR_SECONDS", 1e9)
    monkeypatch.setattr(module, "FIRST_STEP_SECONDS", 0.0)
    shown = ""
    for _ in Terminal().track(range(1), 1, "halvings"):
        for _ in range(1000):  # ends as soon as it is there
            shown += capsys.readouterr().err
            if "0/1" in shown:
                break
            time.sleep(0.01)
    assert "halvings" in shown
    assert "0/1" in shown


def test_verbose_says_how_long_each_step_took(capsys):
    assert list(Terminal(verbose=True).track(range(3), 3, "images")) == [0, 1, 2]
    assert capsys.readouterr().err.startswith("images: 3 of 3 in ")


def test_a_command_gets_a_terminal_that_follows_its_options(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    got = []

    @click.command()
    @with_terminal
    def command(terminal: Terminal) -> None:
        got.append(terminal)

    for words in ([], ["-q"], ["--json"]):
        assert CliRunner().invoke(command, words).output == ""
    said = CliRunner().invoke(command, ["-v"]).stderr.replace("\n", "")
    assert got == [Terminal(), Terminal(quiet=True), Terminal(as_json=True), Terminal(verbose=True)]
    assert f"justright {__version__}" in said
    assert str(tmp_path) in said, "where the caches lie"
