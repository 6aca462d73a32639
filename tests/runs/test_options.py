"""The options of `discover`: names, values, and what help shows."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import justright
from justright.runs.options import FLAGS, OF_IMAGES, checked_options, option_types
from justright.utils.errors import JustrightError


@pytest.mark.parametrize(
    ("name", "meant"), [("minute", "minutes"), ("epoch", "epochs"), ("seeds", "n_seeds"), ("n_clusters", "k")]
)
def test_an_unknown_option_is_rejected_with_the_closest_one(tmp_path, name, meant):
    for call in (justright.discover, justright.discover_features):
        with pytest.raises(JustrightError, match=f"there is no option '{name}'(.|\n)*did you mean {meant}?"):
            call([[1.0, 2.0]], out=tmp_path / "run", **{name: 3})
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scale", "tiny"),
        ("answer", "both"),
        ("pool_role", "rivals"),
        ("weighting", "gentle"),
        ("n_seeds", 0),
        ("n_resamples", -1),
        ("max_bad", 2),
        ("seed", "a"),
        ("epochs", 2.5),
        ("minutes", "3"),
        ("truth", [1, 2]),
        ("settings", "views=3"),
        ("selector", justright.BetaSelector()),
        ("drop_copies", "yes"),
    ],
)
def test_a_value_out_of_range_is_rejected_before_the_run(name, value):
    with pytest.raises(JustrightError, match=f"{name} is .*\nExpected: "):
        checked_options({name: value})


def test_numbers_of_numpy_are_plain_numbers():
    given = {"seed": np.int64(3), "max_bad": np.float32(0.5), "settings": {"views": np.int32(2)}}
    checked = {name: value for name, value in checked_options(given).items() if name in given}
    assert checked == {"seed": 3, "max_bad": 0.5, "settings": {"views": 2}}
    assert [type(checked["seed"]), type(checked["settings"]["views"])] == [int, int]


def test_every_default_is_a_valid_value():
    assert checked_options({}) == {name: option.default for name, option in option_types().items()}


def test_the_signature_and_help_show_every_option():
    for call, missing in ((justright.discover, ()), (justright.discover_features, OF_IMAGES)):
        shown = inspect.signature(call).parameters
        help_text = inspect.getdoc(call)
        for name, (_, _, _, default) in option_types().items():
            assert (name in shown) == (name not in missing)
            if name in shown:
                assert shown[name].default == default
                assert f"\n    {name} ({default!r}): " in help_text


def test_names_on_the_command_line_are_no_other_options():
    assert set(FLAGS) <= set(option_types())
    assert not set(FLAGS.values()) & set(option_types())
