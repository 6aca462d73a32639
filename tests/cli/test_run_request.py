from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner

from justright.benchmark.suite import read_suite
from justright.cli.discover import discover
from justright.cli.run_request import (
    PUBLISHED_ENTROPY,
    CategoryCount,
    as_published,
    chosen_scale,
    estimated,
    read_settings,
    run_spec,
)
from justright.cli.selector_options import AUTO, SelectorCommand
from justright.runs.spec import RunSpec
from justright.utils.errors import DataError


def test_settings_are_read_as_json_or_text():
    read = read_settings(("views=fresh", "learning-rate=0.5", "n_out=null", 'stage1={"n_epochs": 3}'))
    assert read == {"views": "fresh", "learning_rate": 0.5, "n_out": None, "stage1": {"n_epochs": 3}}


def test_the_scale_is_small_on_a_cpu_unless_asked_for():
    assert chosen_scale("auto", "cpu") == "small"
    assert chosen_scale("auto", "cuda") == "full"
    assert chosen_scale("paper", "cpu") == "paper"


def test_at_the_scale_of_the_paper_the_data_set_sets_the_entropy_unless_somebody_else_does():
    cars = as_published(RunSpec(scale="paper"), ["cars"])
    assert cars.settings == {"entropy_scale": 1.0}
    assert (
        as_published(RunSpec(scale="paper", settings={"entropy_scale": 3.0}), ["cars"]).settings["entropy_scale"] == 3
    )
    for spec, names in (
        (RunSpec(scale="paper"), ["cub"]),
        (RunSpec(scale="paper"), ["cars", "cub"]),
        (RunSpec(scale="full"), ["cars"]),
        (RunSpec(scale="paper", method="gcd"), ["cars"]),
    ):
        assert as_published(spec, names) is spec


def test_the_full_profile_sets_the_same_entropy():
    suite = read_suite("taba9", "full")
    found = {problem.target.partition(":")[0]: problem.settings.get("entropy_scale") for problem in suite.problems}
    assert {name: value for name, value in found.items() if value} == PUBLISHED_ENTROPY


def asked(*words):
    given = {"labeled": None, "target": "t", "out": "o"}
    found = []

    def keep(**options):
        names = (*given, "pool", "max_per_class", "max_bad", "drop_copies", "truth", "target_has_labels", "no_report")
        rest = {name: value for name, value in options.items() if name not in names}
        for name in ("tensorboard", "engine", "as_json", "quiet", "verbose"):
            rest.pop(name, None)
        found.append(run_spec(**rest))

    command = SelectorCommand("discover", params=discover.params, callback=keep, more={AUTO: ""})
    command.main(["--target", "t", "--out", "o", "--device", "cpu", *words], standalone_mode=False)
    return found[0]


def test_nothing_is_held_out_at_the_scale_of_the_paper_unless_asked_for():
    assert asked("--scale", "paper").settings["held_out_share"] == 0.0
    assert asked("--scale", "paper", "--held-out", "0.2").settings["held_out_share"] == 0.2
    assert asked("--scale", "full").settings["held_out_share"] == 0.1


def test_the_preset_official_weighs_the_cross_entropy_alone_where_there_is_one():
    assert asked("--preset", "official", "--selector", "beta").settings["weigh_contrastive"] is False
    assert "weigh_contrastive" not in asked("--preset", "official", "--selector", "beta", "--method", "gcd").settings


def test_the_preset_official_is_beta_on_own_labels_too_and_leaves_the_pool_its_role():
    spec = asked("--preset", "official")
    assert (spec.selector, spec.select_labeled, spec.pool_role) == ("beta", True, "guide")
    assert (spec.selector_params["level"], spec.selector_params["normalize"]) == ("image", "max")
    assert asked("--preset", "official", "--method", "mugcd").settings["weigh_contrastive"] is False
    plain = asked()
    assert (plain.selector, plain.select_labeled) == ("none", False)


def test_the_preset_paper_makes_the_pool_a_rival_and_keeps_a_selector_that_was_named():
    assert asked("--preset", "paper").pool_role == "rival"
    assert asked("--preset", "paper", "--selector", "bins").selector == "bins"
    assert asked("--preset", "paper").settings.get("weigh_contrastive") is None


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
