from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.cli.conftest import invoke

from justright.cli import main
from justright.cli.common import (
    OUT_SVG,
    SOURCES,
    STORE,
    Command,
    NameOf,
    Output,
    opened_engine,
    run_options,
)
from justright.data.catalog import DATA_SETS
from justright.data.opening import open_images
from justright.utils.errors import JustrightError
from justright.utils.parallel import ENGINES
from justright.utils.registry import Registry
from justright.utils.remote import RemotePath


@click.command(cls=Command, headings={"size": "Shape"}, tables={"Colors": {"red": "the warm one"}, "Empty": {}})
@click.option("--name", help="What it is called.")
@click.option("--size", help="How large it is.")
@run_options("seed", "backbone", "checkpoint", "device")
def paint(**options: object) -> None:
    """Paint something."""
    click.echo(sorted(options))


def test_help_shows_options_under_headings_and_then_tables():
    text = CliRunner().invoke(paint, ["--help"]).output
    parts = ("Options:", "--name", "Shape:", "--size", "--seed", "--backbone", "--help", "Colors:", "red  the warm one")
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "Empty" not in text


def test_shared_options_reach_the_command():
    out = CliRunner().invoke(paint, []).output.strip()
    assert out == "['backbone', 'checkpoint', 'device', 'name', 'seed', 'size']"


def test_choices_follow_the_registry_without_imports():
    family: Registry[object] = Registry("pet")

    @click.command(cls=Command, tables={"Pets": family})
    @click.option("--pet", type=NameOf(family), help="Which pet to take.")
    def take(pet: str) -> None:
        """Take a pet."""
        click.echo(pet)

    assert CliRunner().invoke(take, ["--pet", "cat"]).exit_code == 2
    family.add("cat", "no_such_module:Cat", "an animal that sleeps")
    assert CliRunner().invoke(take, ["--pet", "cat"]).output == "cat\n"
    text = CliRunner().invoke(take, ["--help"]).output
    assert "[cat]" in text
    assert "cat  an animal that sleeps" in text


def test_option_has_its_own_heading():
    option = click.Option(["--depth"], help="How deep it is.")
    option.heading = "Shape"
    text = CliRunner().invoke(Command("dig", params=[option]), ["--help"]).output
    places = [text.index(part) for part in ("Shape:", "--depth", "Options:", "--help")]
    assert places == sorted(places)


def test_listed_sources_can_be_opened():
    (example,) = [name for name in DATA_SETS if f"{name}:" in SOURCES["NAME:FOLDER"]]
    assert example == "cub"
    assert len(open_images("glyphs")) > 0


def test_engine_opens_with_its_workers(monkeypatch):
    monkeypatch.setitem(ENGINES.data, "processes", lambda n_workers: nullcontext(n_workers))
    with opened_engine("processes", 3) as engine:
        assert engine == 3
    with opened_engine("local", 3) as engine:
        assert engine is None


def test_features_are_a_folder_or_an_address(tmp_path):
    result = []
    features_option = click.option("--features", multiple=True, type=STORE)
    given = click.command("given")(features_option(lambda features: result.extend(features)))
    assert "--features FOLDER OR ADDRESS" in CliRunner().invoke(given, ["--help"]).output
    assert CliRunner().invoke(given, ["--features", str(tmp_path), "--features", "s3://bucket/x"]).exit_code == 0
    assert result == [tmp_path, RemotePath("s3://bucket/x")]


WRITTEN = {  # outputs that are checked before a command starts; commands check stores themselves
    "audit": {"out"},
    "discover": {"out"},
    "demo": {"out"},
    "estimate": {"out", "figure"},
    "evaluate": {"out", "errors", "confusion"},
    "export": {"out"},
    "predict": {"out", "save_backbone"},
    "report": {"out"},
    "review": {"out"},
    "select": {"out", "figures", "html"},
    "benchmark run": {"out"},
    "benchmark show": {"figure", "to"},
    "data glyphs": {"out"},
    "data groceries": {"out"},
    "data split": {"out"},
}


def every_command(group, context, above=()):
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from every_command(command, context, (*above, name))
        else:
            yield " ".join((*above, name)), command


def test_outputs_are_checked_at_the_start(tmp_path):
    (tmp_path / "file").write_text("in the way")
    result = {}
    for name, command in every_command(main, click.Context(main)):
        outputs = {param.name: param for param in command.params if isinstance(param.type, Output)}
        if outputs:
            result[name] = set(outputs)
        for param in outputs.values():
            ending = next(iter(param.type.endings), "")
            with pytest.raises(OSError, match="Not a directory"):
                param.type.convert(str(tmp_path / "file" / f"x{ending}"), param, None)
            fine = str(tmp_path / "new" / "folder" / f"x{ending}")
            assert param.type.convert(fine, param, None) == Path(fine)
    assert result == WRITTEN


def test_wrong_file_ending_raises(tmp_path):
    option = click.Option(["--figure"], type=OUT_SVG)
    with pytest.raises(JustrightError, match=r"(?s)--figure .*k.png.*a name that ends in .svg"):
        OUT_SVG.convert(str(tmp_path / "k.png"), option, None)
    assert OUT_SVG.convert(str(tmp_path / "K.SVG"), option, None).name == "K.SVG"


def test_engine_without_its_package_raises(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    for words in (["audit", "nowhere"], ["extract", "nowhere", "--out", "x"], ["select", "x", "--target", "x"]):
        done = invoke([*words, "--engine", "ray"], 1)
        assert "Ray is not installed" in done.output
