from __future__ import annotations

from dataclasses import asdict

import pytest

from justright.discovery.configs import (
    GCDConfig,
    KMeansConfig,
    MuGCDConfig,
    SimGCDConfig,
    XConConfig,
    small,
    with_settings,
)
from justright.discovery.methods import METHODS
from justright.errors import JustrightError


@pytest.mark.parametrize(
    ("config", "settings"),
    [
        (GCDConfig(), {"n_epochs": 0}),
        (GCDConfig(), {"batch_size": 0}),
        (GCDConfig(), {"learning_rate": -0.1}),
        (GCDConfig(), {"views": 1}),
        (GCDConfig(), {"micro_batch": 0}),
        (GCDConfig(), {"n_out": 0}),
        (XConConfig(), {"n_experts": 0}),
        (SimGCDConfig(), {"n_warmup": -1}),
        (MuGCDConfig(), {"momentum_base": 1.2}),
        (MuGCDConfig(), {"stage1": {"n_epochs": 0}}),
        (KMeansConfig(), {"n_init": 0}),
    ],
)
def test_a_setting_out_of_range_is_refused_when_the_config_is_made(config, settings):
    with pytest.raises(JustrightError, match=r"(?s) is .*Expected: "):
        with_settings(config, settings)


def test_an_unknown_setting_is_refused_with_those_there_are():
    with pytest.raises(JustrightError, match=r"(?s)GCDConfig has no setting 'epochs'.*n_epochs"):
        with_settings(GCDConfig(), {"epochs": 3})
    with pytest.raises(JustrightError, match="no setting 'hidden'"):
        small(SimGCDConfig(), hidden=3)


@pytest.mark.parametrize("name", METHODS)
def test_settings_come_back_from_plain_values(name):
    config = METHODS[name].config_class(n_init=3)
    assert type(config).from_dict(asdict(config)) == config


def test_published_settings_are_the_defaults():
    gcd, xcon, simgcd = GCDConfig(), XConConfig(), SimGCDConfig()
    for config in (gcd, xcon, simgcd):
        assert (config.n_epochs, config.learning_rate, config.momentum, config.weight_decay) == (200, 0.1, 0.9, 5e-5)
        assert (config.supervised_share, config.temperature_unsup, config.temperature_sup) == (0.35, 1.0, 0.07)
    assert (gcd.batch_size, xcon.batch_size, simgcd.batch_size) == (128, 256, 128)
    assert (xcon.n_experts, xcon.expert_scale, gcd.n_out) == (8, 0.1, 65536)
    assert (simgcd.temperature_teacher_first, simgcd.temperature_teacher, simgcd.n_warmup) == (0.07, 0.04, 30)


def test_the_small_form_changes_both_stages_of_mugcd():
    config = small(MuGCDConfig(), 20, batch_size=16, temperature_student=0.2)
    assert (config.n_epochs, config.batch_size, config.n_warmup, config.temperature_student) == (20, 16, 10, 0.2)
    assert (config.stage1.n_epochs, config.stage1.batch_size, config.stage1.n_out) == (20, 16, None)
    given = small(MuGCDConfig(), 20, stage1=GCDConfig(n_epochs=2))
    assert given.stage1.n_epochs == 2
