from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from justright.benchmark.suite import read_suite
from justright.cli.common import read_settings
from justright.features import automatic
from justright.runs.spec import (
    PUBLISHED_ENTROPY,
    UNTRAINED,
    RunSpec,
    make_spec,
    number_of_categories,
    resolve_backbone,
    resolve_device,
    resolve_method,
    resolve_scale,
    with_published_settings,
)
from justright.utils.context import use
from justright.utils.errors import DataError, JustrightError


def test_settings_are_read_as_json_or_text():
    read = read_settings(("views=fresh", "learning-rate=0.5", "n_out=null", 'stage1={"n_epochs": 3}'))
    assert read == {"views": "fresh", "learning_rate": 0.5, "n_out": None, "stage1": {"n_epochs": 3}}


def test_auto_scale_is_small_on_a_cpu():
    assert resolve_scale("auto", "cpu") == "small"
    assert resolve_scale("auto", "cuda") == "full"
    assert resolve_scale("paper", "cpu") == "paper"


def test_paper_scale_takes_entropy_from_the_data_set():
    cars = with_published_settings(RunSpec(scale="paper"), ["cars"])
    assert cars.settings == {"entropy_scale": 1.0}
    assert (
        with_published_settings(RunSpec(scale="paper", settings={"entropy_scale": 3.0}), ["cars"]).settings[
            "entropy_scale"
        ]
        == 3
    )
    for spec, names in (
        (RunSpec(scale="paper"), ["cub"]),
        (RunSpec(scale="paper"), ["cars", "cub"]),
        (RunSpec(scale="full"), ["cars"]),
        (RunSpec(scale="paper", method="gcd"), ["cars"]),
    ):
        assert with_published_settings(spec, names) is spec


def test_the_full_profile_sets_the_same_entropy():
    suite = read_suite("taba9", "full")
    result = {problem.target.partition(":")[0]: problem.settings.get("entropy_scale") for problem in suite.problems}
    assert {name: value for name, value in result.items() if value} == PUBLISHED_ENTROPY


def requested(**options):
    return make_spec(device="cpu", **options)


def test_paper_scale_holds_out_nothing_by_default():
    assert requested(scale="paper").settings["held_out_share"] == 0.0
    assert requested(scale="paper", held_out=0.2).settings["held_out_share"] == 0.2
    assert requested(scale="full").settings["held_out_share"] == 0.1


def test_official_preset_weighs_only_the_cross_entropy():
    assert requested(preset="official", selector="beta").settings["weigh_contrastive"] is False
    assert "weigh_contrastive" not in requested(preset="official", method="gcd").settings


def test_official_preset_selects_own_labels_with_beta():
    spec = requested(preset="official")
    assert (spec.selector, spec.select_labeled, spec.pool_role) == ("beta", True, "guide")
    assert (spec.selector_params["level"], spec.selector_params["normalize"]) == ("image", "max")
    assert requested(preset="official", method="mugcd").settings["weigh_contrastive"] is False
    plain = requested()
    assert (plain.selector, plain.select_labeled) == ("none", False)


def test_paper_preset_makes_the_pool_a_rival():
    assert requested(preset="paper").pool_role == "rival"
    assert requested(preset="paper", selector="bins").selector == "bins"
    assert requested(preset="paper").settings.get("weigh_contrastive") is None


def test_answer_is_joint_except_for_the_paper():
    assert requested().answer == "joint"
    assert requested(scale="paper").answer == requested(preset="paper").answer == "method"
    assert requested(preset="paper", answer="joint").answer == "joint"


def test_unknown_presets_and_parameters_are_rejected():
    with pytest.raises(JustrightError, match="one of paper, official"):
        requested(preset="other")
    with pytest.raises(JustrightError, match="--alpha belongs to beta"):
        requested(selector="bins", selector_params={"alpha": 1.0})
    with pytest.raises(JustrightError, match="only one of them"):
        requested(selector="bins", weights=Path("w.csv"))


def write(path, **estimates):
    path.write_text(json.dumps({"estimates": {name: {"n_categories": k} for name, k in estimates.items()}}))
    return path


def test_k_is_a_number_or_a_file_of_estimates(tmp_path):
    assert number_of_categories(None) is None
    with pytest.raises(JustrightError, match=r"k = 9\.0") as caught:
        number_of_categories(9.0)
    assert "a whole number, such as 9" in str(caught.value)
    assert number_of_categories("40") == number_of_categories(40) == 40
    assert number_of_categories(write(tmp_path / "k.json", spread=9, combined=7)) == 7
    assert number_of_categories(str(write(tmp_path / "k.json", mixture=9))) == 9
    with pytest.raises(JustrightError, match="at least 2"):
        number_of_categories(1)


def test_file_without_k_raises(tmp_path):
    for text in ("", "7", "[]", '{"estimates": {}}', '{"estimates": {"mixture": {"n_categories": "7"}}}'):
        (tmp_path / "k.json").write_text(text)
        with pytest.raises(DataError, match=r"k\.json does not hold"):
            number_of_categories(tmp_path / "k.json")
    with pytest.raises(DataError, match="2 estimates"):
        number_of_categories(write(tmp_path / "k.json", mixture=9, spread=8))
    with pytest.raises(DataError, match="a number, or a file"):
        number_of_categories(tmp_path / "nowhere.json")


def test_auto_is_resolved_once_and_a_resumed_run_keeps_its_choice(monkeypatch):
    monkeypatch.setattr(automatic, "choose_device", lambda: automatic.Choice("abacus", "it was there"))
    monkeypatch.setattr(automatic, "choose_backbone", lambda device: automatic.Choice("net", f"good on an {device}"))
    messages: list[str] = []
    with use(message=messages.append):
        assert resolve_device("auto") == "abacus"
        assert resolve_device("auto", previous="cpu") == "cpu"
        assert resolve_device("cuda:1", previous="cpu") == "cuda:1"
        assert resolve_backbone("auto", "abacus", None) == ("net", "auto: good on an abacus")
        assert resolve_backbone("auto", "cpu", None, previous="old_net")[0] == "old_net"
        assert resolve_backbone("glyph_vit", "cpu", None, previous="old_net")[0] == "glyph_vit"
        with pytest.raises(JustrightError, match="without --backbone"):
            resolve_backbone("auto", "cpu", Path("x.pth"))
    assert messages == [
        "Device: abacus (it was there).",
        "Device: cpu (as before).",
        "Network: net (good on an abacus).",
        "Network: old_net (as before).",
    ]


LITE = RunSpec(scale="small", answer="joint", backbone="efficientnet_lite0", settings={"held_out_share": 0.1})


def test_auto_does_not_train_an_efficientnet_lite():
    messages = []
    with use(message=messages.append):
        assert resolve_method(LITE, has_pool=False).method == UNTRAINED
    assert messages[0].endswith("--method simgcd trains.")


def test_auto_does_not_train_on_given_features():
    assert resolve_method(replace(LITE, backbone="vectors"), has_pool=False, has_vectors=True).method == UNTRAINED


@pytest.mark.parametrize("backbone", ["dinov2_vits14", "glyph_vit", "resnet50"])
def test_auto_trains_other_networks(backbone):
    assert resolve_method(replace(LITE, backbone=backbone), has_pool=False).method == "simgcd"


@pytest.mark.parametrize(
    "changed",
    [
        {"weights": Path("weights.csv")},
        {"select_labeled": True},
        {"n_seeds": 3},
        {"settings": {"held_out_share": 0.1, "minutes": 2}},
        {"answer": "method"},
        {"scale": "full"},
    ],
)
def test_auto_trains_if_the_request_needs_it(changed):
    assert resolve_method(replace(LITE, **changed), has_pool=False).method == "simgcd"
    assert resolve_method(LITE, has_pool=True).method == "simgcd"


def test_a_resumed_run_keeps_its_method():
    assert resolve_method(LITE, has_pool=False, previous="gcd").method == "gcd"
