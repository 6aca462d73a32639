from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner

from justright.cli.stage_files import CategoryCount, estimated, features_option
from justright.errors import DataError
from justright.remote import RemotePath


@click.command()
@click.option("--k", type=CategoryCount())
def count(k: int) -> None:
    """Say K."""
    click.echo(k)


def write(path, **estimates):
    path.write_text(json.dumps({"estimates": {name: {"n_categories": k} for name, k in estimates.items()}}))
    return path


def test_k_is_a_number_or_what_an_estimate_says(tmp_path):
    assert CliRunner().invoke(count, ["--k", "40"]).output == "40\n"
    assert CliRunner().invoke(count, ["--k", str(write(tmp_path / "k.json", spread=9, combined=7))]).output == "7\n"
    assert estimated(write(tmp_path / "k.json", mixture=9)) == 9
    assert CliRunner().invoke(count, ["--k", "1"]).exit_code == 2


def test_a_file_that_says_no_number_is_refused(tmp_path):
    for text in ("", "7", "[]", '{"estimates": {}}', '{"estimates": {"mixture": {"n_categories": "7"}}}'):
        (tmp_path / "k.json").write_text(text)
        with pytest.raises(DataError, match=r"k\.json does not say"):
            estimated(tmp_path / "k.json")
    with pytest.raises(DataError, match="2 estimates"):
        estimated(write(tmp_path / "k.json", mixture=9, spread=8))
    with pytest.raises(DataError, match="a number, or a file"):
        estimated(tmp_path / "nowhere.json")


def test_features_lie_in_a_folder_or_at_an_address(tmp_path):
    found = []
    given = click.command("given")(features_option(lambda features: found.extend(features)))
    assert CliRunner().invoke(given, ["--features", str(tmp_path), "--features", "s3://bucket/x"]).exit_code == 0
    assert found == [tmp_path, RemotePath("s3://bucket/x")]
