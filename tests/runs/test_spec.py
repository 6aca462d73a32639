from __future__ import annotations

import json

import pytest

from justright.runs.spec import SCALES, RunSpec, config_of
from justright.utils.errors import JustrightError


def test_spec_survives_json():
    spec = RunSpec(selector_params={"edges": (0.1, 0.9)}, settings={"views": "fresh"})
    plain = spec.to_json()
    assert plain == json.loads(json.dumps(plain))
    assert plain["selector_params"] == {"edges": [0.1, 0.9]}
    assert plain.keys() == vars(spec).keys()


def test_files_are_compared_by_content_and_not_by_path(tmp_path):
    specs = []
    for name, content in (("one", b"a"), ("same", b"a"), ("other", b"b")):
        folder = tmp_path / name
        folder.mkdir()
        for file in ("model.safetensors", "weights.csv"):
            (folder / file).write_bytes(content)
        specs.append(RunSpec(checkpoint=folder / "model.safetensors", weights=folder / "weights.csv"))
    one, same, other = (spec.to_json() for spec in specs)
    assert one == same == RunSpec(checkpoint=tmp_path / "one", weights=specs[0].weights).to_json(), "also a directory"
    assert one["checkpoint"] != other["checkpoint"]


def test_values_must_be_plain():
    with pytest.raises(TypeError):
        RunSpec(settings={"views": object()}).to_json()


def test_the_scales_are_those_of_the_spec():
    assert RunSpec().scale in SCALES == ("paper", "full", "small")


def test_settings_override_the_defaults_of_the_scale():
    config = config_of(RunSpec(method="mugcd", scale="small", settings={"learning_rate": 0.5}))
    assert (config.hidden_dim, config.learning_rate) == (512, 0.5)
    assert config_of(RunSpec(scale="full")).n_epochs == 200
    assert config_of(RunSpec(method="kmeans", scale="small", settings={"n_init": 3})).n_init == 3
    with pytest.raises(JustrightError, match="no setting 'nonsense'"):
        config_of(RunSpec(settings={"nonsense": 1}))


def test_seeds_share_minutes():
    settings = {"minutes": 9.0, "stage1": {"minutes": 1.0}}
    assert config_of(RunSpec(settings={"minutes": 9.0})).minutes == 9
    assert config_of(RunSpec(settings={"minutes": 9.0}, n_seeds=3)).minutes == 3
    config = config_of(RunSpec(method="mugcd", settings=settings, n_seeds=3))
    assert (config.minutes, config.stage1.minutes) == (3, 1)


def test_the_scale_of_the_paper_saves_no_work():
    for method in ("simgcd", "gcd", "xcon", "mugcd"):
        config = config_of(RunSpec(method=method, scale="paper"))
        assert (config.n_epochs, config.views, config.n_init, config.max_iter) == (200, "fresh", 100, 200)
        assert config.held_out_share == 0.0
    assert config_of(RunSpec(method="mugcd", scale="paper")).stage1.views == "fresh"


@pytest.mark.parametrize("scale", ["paper", "full", "small"])
def test_epochs_and_rate_reach_both_trainings_of_mugcd(scale):
    settings = {"n_epochs": 15, "learning_rate": 0.5, "stage1": {"batch_size": 64}}
    config = config_of(RunSpec(method="mugcd", scale=scale, settings=settings))
    assert (config.stage1.n_epochs, config.stage1.learning_rate, config.stage1.batch_size) == (15, 0.5, 64)
    assert (config.n_epochs, config.learning_rate, config.batch_size) == (15, 0.5, 128)


@pytest.mark.parametrize(
    ("method", "settings", "why"),
    [
        ("simgcd", {"n_init": 5}, "n_init does nothing in simgcd: the method assigns by prototypes, not k-means"),
        ("mugcd", {"max_iter": 5}, "max_iter does nothing in mugcd: the method assigns by prototypes"),
        ("mugcd", {"stage1": {"n_init": 5}}, "stage1.n_init does nothing in mugcd: the method assigns by prototypes"),
        ("cms", {"n_init": 5}, "n_init does nothing in cms: CMS clusters by mean shift"),
    ],
)
def test_setting_without_effect_raises(method, settings, why):
    with pytest.raises(JustrightError, match=f"^{why}"):
        config_of(RunSpec(method=method, settings=settings))


@pytest.mark.parametrize("method", ["kmeans", "gcd", "xcon", "selex"])
def test_methods_with_k_means_have_its_settings(method):
    assert config_of(RunSpec(method=method, settings={"n_init": 5, "max_iter": 7})).n_init == 5
