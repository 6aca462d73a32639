from __future__ import annotations

import re
from ast import literal_eval
from dataclasses import dataclass, fields

import click
import pytest
from click.testing import CliRunner

from justright.cli.selector_options import SelectorCommand, make_selector, selector_options
from justright.runs.spec import AUTO, checked_params
from justright.selection import SELECTORS, BetaSelector, BinsSelector, UniformSelector
from justright.utils.errors import JustrightError
from justright.utils.settings import at_least, setting


@click.command(cls=SelectorCommand, more={AUTO: "takes the best"})
def tell(selector, preset, selector_params=None):
    """Print the options."""
    click.echo([selector, selector_params])


def message(*words, exit_code=0):
    done = CliRunner().invoke(tell, words)
    assert done.exit_code == exit_code, done.output
    return done.output


@pytest.fixture
def added():
    @dataclass(repr=False, eq=False)
    class Added(UniformSelector):
        n_best: int = setting(3, "classes to keep", at_least(1))
        is_strict: bool = setting(False, "keep no others")
        alpha: float = setting(2.5, "how steep it is")
        word: str = setting("", "what to look for")

    SELECTORS.add("added", Added, "keeps the best")
    yield Added
    del SELECTORS["added"]


def test_every_parameter_of_every_selector_is_an_option_with_help():
    wanted = {each.name for kind in SELECTORS.values() for each in fields(kind)} - {"seed"}
    options = {option.name: option for option in selector_options()}
    assert set(options) == wanted | {"preset"}
    assert (
        options["alpha"].help == "beta: shape of the density, larger favors similar classes; 1 and 1 weigh all 1 (5)."
    )
    assert options["metric"].help == "cui, bins: distance of centroids; l2: of images scaled to length 1 (euclidean)."
    assert {option.opts[0] for option in options.values()} > {
        "--no-discard",
        "--no-select",
        "--weight-range",
        "--share",
    }


def test_values_have_the_types_of_the_parameters():
    words = ("--reduction", "0.5", "--weight-range", "0.1", "2", "--no-discard", "--n-clusters", "3", "--domain", "raw")
    given = {"n_clusters": 3, "discard": False, "reduction": 0.5, "domain": "raw", "weight_range": (0.1, 2.0)}
    assert literal_eval(message(*words)) == [None, given]
    assert message("--reduction", "median") == "[None, {'reduction': 'median'}]\n"
    assert message("--selector", "bins") == "['bins', None]\n"


@pytest.mark.parametrize(
    "words", [("--reduction", "7"), ("--n-clusters", "1"), ("--share", "2"), ("--alpha", "x"), ("--selector", "magic")]
)
def test_values_out_of_range_raise(words):
    assert f"Invalid value for '{words[0]}'" in message(*words, exit_code=2)


def test_added_selector_has_name_options_and_help(added):
    assert message("--selector", "added", "--n-best", "5", "--is-strict", "--word", "a b") == (
        "['added', {'n_best': 5, 'is_strict': True, 'word': 'a b'}]\n"
    )
    assert "at least 1" in message("--n-best", "0", exit_code=2)
    text = message("--help")
    assert re.search(r"^  added +keeps the best$", text, re.MULTILINE)
    assert re.search(r"^  auto +takes the best$", text, re.MULTILINE)
    assert "added: classes to keep (3)." in text
    assert "added: how steep it is (2.5)." in " ".join(text.split())
    assert text.index("Print the options") < text.index("Selectors:")
    made = make_selector("added", {"n_best": 4}, seed=0)
    assert made.get_params() == {"n_best": 4, "is_strict": False, "alpha": 2.5, "word": ""}


def test_removed_selector_has_no_options():
    assert "No such option" in message("--n-best", "5", exit_code=2)


def test_selector_gets_options_and_seed():
    made = make_selector("bins", {"n_clusters": 5, "discard": False}, seed=7)
    assert isinstance(made, BinsSelector)
    assert repr(made) == "BinsSelector(n_clusters=5, seed=7, discard=False)"
    assert make_selector("none", {"n_clusters": 5}, seed=7).get_params() == {}


def test_parameter_of_another_selector_raises():
    with pytest.raises(JustrightError, match="--selector cui together with --no-discard") as error:
        checked_params("cui", {"discard": False})
    assert error.value.expected == "--no-discard belongs to bins"
    with pytest.raises(JustrightError, match="--selector auto together with --metric"):
        checked_params(AUTO, {"metric": "l2"})
    assert checked_params(AUTO, {"n_clusters": 4}) == {}


def test_official_preset_is_beta_only():
    params = checked_params("beta", {"n_clusters": 4}, "official")
    assert BetaSelector(**params).get_params() == BetaSelector.official().get_params()
    for name, given in (("bins", {}), ("beta", {"alpha": 2.0})):
        with pytest.raises(JustrightError, match="--preset official"):
            checked_params(name, given, "official")


def test_clustered_selectors_need_n_clusters():
    with pytest.raises(JustrightError, match="number of categories") as error:
        make_selector("cui", {}, seed=0)
    assert error.value.expected == "--n-clusters K"
