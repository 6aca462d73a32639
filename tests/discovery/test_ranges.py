from __future__ import annotations

from dataclasses import fields

import pytest

from justright.discovery.methods import METHODS
from justright.discovery.ranges import RANGES, refuse_out_of_range
from justright.errors import JustrightError

WRONG = {
    "held_out_share": [-0.1, 1.0],
    "n_init": [0],
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
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_what_cannot_be_is_refused_with_what_can(name, value):
    with pytest.raises(JustrightError, match=f"(?s){name} is .*Expected: "):
        refuse_out_of_range({name: value})


def test_every_setting_that_is_no_switch_has_a_range():
    names = {item.name for method in METHODS.values() for item in fields(method.config_class)}
    assert names - RANGES.keys() == {"use_labels", "decay_vectors", "stage1"}
    assert RANGES.keys() == WRONG.keys()
    assert RANGES.keys() <= names


def test_the_ends_of_a_range_belong_to_it():
    refuse_out_of_range({"n_epochs": 1, "batch_size": 1, "learning_rate": 0.0, "views": 2, "micro_batch": None})
    refuse_out_of_range({"refresh": 1.0, "supervised_share": 0.0, "n_warmup": 0, "held_out_share": 0, "views": "fresh"})
