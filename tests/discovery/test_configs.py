from __future__ import annotations

import copy
from dataclasses import asdict, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justright.discovery.configs import MIN_PASSES, MIN_STEPS, STEADY_SHARE, STEPS_PER_CATEGORY
from justright.discovery.gcd import GCDConfig
from justright.discovery.kmeans import KMeansConfig
from justright.discovery.methods import METHODS
from justright.discovery.mugcd import MuGCDConfig
from justright.discovery.simgcd import SimGCDConfig
from justright.discovery.xcon import XConConfig
from justright.utils.errors import JustrightError
from justright.utils.settings import ANYTHING, check_ranges

WRONG = {
    "use_labels": ["no", 1, None],
    "decay_vectors": ["no", 1, None],
    "held_out_share": [-0.1, 1.0],
    "n_init": [0],
    "max_iter": [0],
    "weigh_contrastive": ["no", 1, None],
    "views_by_seed": ["no", 1, None],
    "n_epochs": [0, -1, 1.5, "3", True],
    "steady_share": [-0.1, 1.0],
    "minutes": [0, -1, "ten"],
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
    "expert_scale": [-1.0],
    "temperature_student": [0.0],
    "entropy_scale": [-1.0],
    "entropy_scale_uneven": [-1.0],
    "temperature_teacher_first": [0.0],
    "temperature_teacher": [0.0],
    "n_warmup": [-1],
    "center": ["sometimes", True],
    "directions": ["sometimes", True],
    "heads_first": (-1, 1.5),
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
def test_invalid_settings_are_rejected_with_valid_ones(name, value):
    for config in with_setting(name):
        wrong = copy.copy(config)
        object.__setattr__(wrong, name, value)  # a constructor call would be rejected by the type checker of the tests
        with pytest.raises(JustrightError, match=f"(?s){name} is .*Expected: "):
            check_ranges(wrong)


@pytest.mark.parametrize("config", CONFIGS, ids=list(METHODS))
def test_config_checks_ranges(config):
    with pytest.raises(JustrightError, match=r"(?s)n_init is 0.*Expected: "):
        config.with_settings({"n_init": 0})


def test_every_setting_has_a_range_and_a_help_line():
    settings = [item for config in CONFIGS for item in fields(config)]
    assert all(item.metadata["about"] for item in settings)
    assert [item.name for item in settings if item.metadata["allowed"] is ANYTHING] == []
    assert {item.name for item in settings} == WRONG.keys()


def test_ranges_include_their_ends():
    ends = {"n_epochs": 1, "batch_size": 1, "learning_rate": 0.0, "views": 2, "micro_batch": None}
    ends |= {"supervised_share": 0.0, "n_warmup": 0, "held_out_share": 0.0}
    assert SimGCDConfig(**ends).views == 2
    assert SimGCDConfig(views="fresh").views == "fresh"


def test_mugcd_validates_stage1_settings():
    with pytest.raises(JustrightError, match="n_epochs is 0"):
        MuGCDConfig().with_settings({"stage1": {"n_epochs": 0}})


def test_unknown_setting_is_rejected_with_the_valid_ones():
    with pytest.raises(JustrightError, match=r"(?s)GCDConfig has no setting 'epochs'.*n_epochs"):
        GCDConfig().with_settings({"epochs": 3})
    with pytest.raises(JustrightError, match="GCDConfig has no setting 'hidden'"):
        MuGCDConfig().with_settings({"stage1": {"hidden": 3}})


@pytest.mark.parametrize("name", METHODS)
def test_settings_round_trip_through_plain_values(name):
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


def test_small_settings_change_trained_methods_only():
    assert KMeansConfig().small() == KMeansConfig(directions="auto")
    config = XConConfig().small()
    assert (config.n_epochs, config.hidden_dim, config.out_dim, config.n_out) == (None, 512, 128, None)


def test_small_settings_change_both_trainings_of_mugcd():
    config = MuGCDConfig().small().with_settings({"n_epochs": 20}).fitted(1000, 10)
    assert (config.n_epochs, config.n_warmup, config.hidden_dim) == (20, 4, 512)
    assert (config.stage1.n_epochs, config.stage1.hidden_dim, config.stage1.n_out) == (20, 512, None)


def test_published_length_is_independent_of_data():
    for config in (KMeansConfig(), SimGCDConfig(), MuGCDConfig()):
        assert config.fitted(10**6, 1000) == config


def test_small_length_depends_on_categories_and_images():
    small = SimGCDConfig().small()

    def steps(n_images, n_categories):
        fitted = small.fitted(n_images, n_categories)
        return fitted.n_epochs * fitted.n_steps

    assert MIN_STEPS <= steps(500, 5) < 1.1 * MIN_STEPS
    assert STEPS_PER_CATEGORY * 200 <= steps(6000, 200) < 1.1 * STEPS_PER_CATEGORY * 200
    assert MIN_PASSES * 10**6 <= 128 * steps(10**6, 10) < 1.1 * MIN_PASSES * 10**6


@given(st.integers(1, 10**7), st.integers(1, 10**5))
def test_fitted_epochs_are_short_and_training_long_enough(n_images, n_categories):
    fitted = SimGCDConfig().small().fitted(n_images, n_categories)
    assert fitted.n_steps <= max(1, n_images // 128)
    assert fitted.n_epochs * fitted.n_steps >= max(MIN_STEPS, STEPS_PER_CATEGORY * n_categories)
    assert 2 <= fitted.n_warmup <= max(2, fitted.n_epochs / 5)


def test_n_steps_sets_the_length_of_an_epoch():
    fitted = SimGCDConfig().small().with_settings({"n_steps": 7}).fitted(2000, 79)
    assert fitted.n_steps == 7
    assert STEPS_PER_CATEGORY * 79 <= 7 * fitted.n_epochs < STEPS_PER_CATEGORY * 79 + 7


def test_time_limit_sets_a_steady_rate():
    assert SimGCDConfig(minutes=10.0).fitted(1000, 10).steady_share == STEADY_SHARE
    assert SimGCDConfig(minutes=10.0, steady_share=0.5).fitted(1000, 10).steady_share == 0.5


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"minutes": 10.0}, (5, 5)),
        ({"minutes": 10.0, "stage1": {"minutes": 2.0}}, (2, 8)),
        ({"stage1": {"minutes": 2.0}}, (2, None)),
        ({}, (None, None)),
    ],
)
def test_stage1_minutes_are_subtracted_from_the_total(settings, expected):
    fitted = MuGCDConfig().with_settings(settings).fitted(1000, 10)
    assert (fitted.stage1.minutes, fitted.for_second_training().minutes) == expected
    assert fitted.minutes == settings.get("minutes")
    assert fitted.fitted(1000, 10) == fitted
    assert MuGCDConfig(minutes=10.0).fitted(1000, 10).stage1.minutes == 5


def test_stage1_gets_at_most_the_total_time():
    with pytest.raises(JustrightError, match=r"(?s)12 minutes for the first training, 10 for both.*share"):
        MuGCDConfig().with_settings({"minutes": 10.0, "stage1": {"minutes": 12.0}})
    most = MuGCDConfig().with_settings({"minutes": 10.0, "stage1": {"minutes": 8.0}}).fitted(1000, 10)
    assert most.for_second_training().minutes == 2
