from __future__ import annotations

import copy
from dataclasses import asdict, fields

import pytest

from justright.discovery.gcd import GCDConfig
from justright.discovery.kmeans import KMeansConfig
from justright.discovery.methods import METHODS
from justright.discovery.mugcd import MuGCDConfig
from justright.discovery.simgcd import SimGCDConfig
from justright.discovery.xcon import XConConfig
from justright.errors import JustrightError
from justright.settings import ANYTHING, refuse_out_of_range

WRONG = {
    "use_labels": ["no", 1, None],
    "decay_vectors": ["no", 1, None],
    "held_out_share": [-0.1, 1.0],
    "n_init": [0],
    "max_iter": [0],
    "views_by_seed": ["no", 1, None],
    "weigh_contrastive": ["no", 1, None],
    "n_epochs": [0, -1, 1.5, "3", None, True],
    "n_steps": [0, 2.5],
    "batch_size": [0, -8],
    "learning_rate": [-0.1, float("nan"), float("inf"), "fast"],
    "floor_share": [-1.0, 2.0],
    "momentum": [1.0, -0.1],
    "weight_decay": [-1e-5],
    "backbone_share": [-0.1, 1.1],
    "supervised_share": [-0.1, 1.1],
    "guide_share": [-0.1],
    "guide_scale": [-1.0],
    "temperature_unsup": [0.0],
    "temperature_sup": [0.0, -1.0],
    "hidden_dim": [0],
    "out_dim": [0],
    "views": [0, 1, "frsh", 2.5, None],
    "refresh": [-0.1, 1.1],
    "bank_precision": ["float64"],
    "precision": ["int8", "double"],
    "micro_batch": [0, -1, 0.5],
    "n_out": [0],
    "n_experts": [0],
    "n_neighbors": [0, 1.5],
    "shift": [-0.1, 1.1],
    "categories": ["guessed", 5],
    "cluster_by": ["labels", None],
    "n_ward": [1],
    "smoothing": [-0.1, 1.1],
    "target": ["radius", None],
    "order": ["none", True],
    "capacity": ["yes", 1],
    "expert_scale": [-1.0],
    "temperature_student": [0.0],
    "entropy_scale": [-1.0],
    "temperature_teacher_first": [0.0],
    "temperature_teacher": [0.0],
    "n_warmup": [-1],
    "center": ["sometimes", True],
    "momentum_base": [1.2],
    "momentum_last": [-0.1],
    "infer_with": ["both"],
    "strong_color": [-0.1, 1.1],
    "strong_area": [0.0, 1.1],
    "stage1": [3, None, KMeansConfig()],
}
CONFIGS = [METHODS[name].config_class() for name in METHODS]


def with_setting(name):
    return [config for config in CONFIGS if name in {item.name for item in fields(config)}]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_what_cannot_be_is_refused_with_what_can(name, value):
    for config in with_setting(name):
        wrong = copy.copy(config)
        object.__setattr__(wrong, name, value)  # the type checker of the test run would come first
        with pytest.raises(JustrightError, match=f"(?s){name} is .*Expected: "):
            refuse_out_of_range(wrong)


@pytest.mark.parametrize("config", CONFIGS, ids=list(METHODS))
def test_ranges_are_looked_at_when_a_config_is_made(config):
    with pytest.raises(JustrightError, match=r"(?s)n_init is 0.*Expected: "):
        config.with_settings({"n_init": 0})


def test_every_setting_has_a_range_and_a_help_line():
    settings = [item for config in CONFIGS for item in fields(config)]
    assert all(item.metadata["about"] for item in settings)
    assert [item.name for item in settings if item.metadata["allowed"] is ANYTHING] == []
    assert {item.name for item in settings} == WRONG.keys()


def test_the_ends_of_a_range_belong_to_it():
    ends = {"n_epochs": 1, "batch_size": 1, "learning_rate": 0.0, "views": 2, "micro_batch": None, "refresh": 1.0}
    ends |= {"supervised_share": 0.0, "n_warmup": 0, "held_out_share": 0.0}
    assert SimGCDConfig(**ends).views == 2
    assert SimGCDConfig(views="fresh").views == "fresh"


def test_a_setting_out_of_range_is_refused_in_the_first_training_of_mugcd_too():
    with pytest.raises(JustrightError, match="n_epochs is 0"):
        MuGCDConfig().with_settings({"stage1": {"n_epochs": 0}})


def test_an_unknown_setting_is_refused_with_those_there_are():
    with pytest.raises(JustrightError, match=r"(?s)GCDConfig has no setting 'epochs'.*n_epochs"):
        GCDConfig().with_settings({"epochs": 3})
    with pytest.raises(JustrightError, match="GCDConfig has no setting 'hidden'"):
        MuGCDConfig().with_settings({"stage1": {"hidden": 3}})


@pytest.mark.parametrize("name", METHODS)
def test_settings_come_back_from_plain_values(name):
    config = METHODS[name].config_class(n_init=3)
    assert type(config)().with_settings(asdict(config)) == config


def test_published_settings_are_the_defaults():
    gcd, xcon, simgcd = GCDConfig(), XConConfig(), SimGCDConfig()
    for config in (gcd, xcon, simgcd):
        assert (config.n_epochs, config.learning_rate, config.momentum, config.weight_decay) == (200, 0.1, 0.9, 5e-5)
        assert (config.supervised_share, config.temperature_unsup, config.temperature_sup) == (0.35, 1.0, 0.07)
    assert (gcd.batch_size, xcon.batch_size, simgcd.batch_size) == (128, 256, 128)
    assert (xcon.n_experts, xcon.expert_scale, gcd.n_out) == (8, 0.1, 65536)
    assert (simgcd.temperature_teacher_first, simgcd.temperature_teacher, simgcd.n_warmup) == (0.07, 0.04, 30)
    assert (gcd.decay_vectors, xcon.decay_vectors, simgcd.decay_vectors) == (True, True, False)


def test_the_small_form_is_lighter_for_trained_methods_alone():
    assert KMeansConfig().small(3) == KMeansConfig()
    config = XConConfig().small()
    assert (config.n_epochs, config.hidden_dim, config.out_dim, config.n_out) == (30, 512, 128, None)
    assert (SimGCDConfig().small(20).n_warmup, SimGCDConfig().small(2).n_warmup) == (10, 2)


def test_the_small_form_changes_both_trainings_of_mugcd():
    config = MuGCDConfig().small(20)
    assert (config.n_epochs, config.n_warmup, config.hidden_dim) == (20, 10, 512)
    assert (config.stage1.n_epochs, config.stage1.hidden_dim, config.stage1.n_out) == (20, 512, None)
