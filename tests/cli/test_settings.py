"""`justright settings` lists every setting with default, range and help."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from click.testing import Result
from tests.cli.conftest import invoke
from tests.contributing_examples import example

from justright.cli.common import read_settings
from justright.discovery.methods import METHODS


def call(*words: str) -> Result:
    return invoke(["settings", *words])


def listed(*words: str) -> dict[str, dict[str, object]]:
    result = json.loads(call(*words, "--json").stdout)
    return {each["name"]: each for each in result["settings"]}


@pytest.mark.parametrize("method", METHODS)
def test_every_setting_of_a_method_is_listed_with_range_and_help(method):
    result, config = listed(method, "--scale", "full"), METHODS[method].config_class()
    assert list(result) == [each.name for each in fields(config) if each.name not in config.without_effect]
    assert all(each["range"] and len(str(each["help"]).split()) >= 2 for each in result.values())


def test_settings_without_effect_are_not_listed():
    assert "n_init" in listed("gcd")
    assert "n_init" not in listed("simgcd")


def test_defaults_are_those_of_the_scale():
    paper, small = listed("simgcd", "--scale", "paper"), listed("simgcd", "--scale", "small")
    assert (paper["n_epochs"]["default"], small["n_epochs"]["default"]) == (200, None)
    assert (paper["views"]["default"], small["views"]["default"]) == ("fresh", 4)


def test_auto_scale_depends_on_the_device():
    assert "Settings of gcd at --scale small" in call("gcd", "--device", "cpu").stdout


def test_settings_of_a_first_training_are_nested():
    stage1 = listed("mugcd", "--scale", "full")["stage1"]["default"]
    assert isinstance(stage1, dict)
    assert stage1["n_epochs"] == 200
    assert f"its own {len(stage1)} settings" in call("mugcd", "--scale", "full").stdout


def test_settings_table_names_options_of_each_setting():
    text = call("simgcd", "--scale", "small").stdout
    assert "--set NAME=VALUE changes one" in text
    assert "--epochs sets n_epochs, --minutes sets minutes, --held-out sets held_out_share." in text
    assert "--epochs" not in call("kmeans", "--scale", "small").stdout


def test_shown_defaults_are_valid_values():
    assert read_settings(("n_epochs=None", "decay_vectors=False", "views=fresh")) == {
        "n_epochs": None,
        "decay_vectors": False,
        "views": "fresh",
    }


def test_settings_of_an_added_method_are_listed():
    example("method")
    try:
        assert listed("pulled", "--scale", "full")["pull"] == {
            "name": "pull",
            "default": 1.0,
            "range": "anything",
            "help": "factor of its loss",
        }
    finally:
        del METHODS["pulled"]
