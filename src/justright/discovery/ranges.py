"""What the settings of a method may be: looked at when a config is made, before any work is done."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from justright.errors import JustrightError
from justright.features import bank_records, feature_network

Range = tuple[Callable[[Any], bool], str]
"""Whether a value may be, and what may be in words."""


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _one_of(*names: str) -> Range:
    return (lambda value: value in names), f"one of {', '.join(names)}"


COUNT: Range = (lambda value: _is_whole(value, 1)), "a whole number of at least 1"
COUNT_OR_NONE: Range = (lambda value: value is None or _is_whole(value, 1)), f"{COUNT[1]}, or None"
SHARE: Range = (lambda value: 0 <= value <= 1), "from 0 to 1"
BELOW_1: Range = (lambda value: 0 <= value < 1), "at least 0, below 1"
NOT_NEGATIVE: Range = (lambda value: 0 <= value < math.inf), "at least 0, and finite"
POSITIVE: Range = (lambda value: 0 < value < math.inf), "above 0, and finite"

RANGES: dict[str, Range] = {
    "held_out_share": BELOW_1,
    "n_init": COUNT,
    "n_epochs": COUNT,
    "n_steps": COUNT_OR_NONE,
    "batch_size": COUNT,
    "learning_rate": NOT_NEGATIVE,
    "backbone_share": ((lambda value: value is None or 0 <= value <= 1), "from 0 to 1, or None"),
    "floor_share": SHARE,
    "momentum": BELOW_1,
    "weight_decay": NOT_NEGATIVE,
    "supervised_share": SHARE,
    "guide_share": NOT_NEGATIVE,
    "guide_scale": NOT_NEGATIVE,
    "temperature_unsup": POSITIVE,
    "temperature_sup": POSITIVE,
    "hidden_dim": COUNT,
    "out_dim": COUNT,
    # two views of an image make a pair
    "views": ((lambda value: value == "fresh" or _is_whole(value, 2)), 'a whole number of at least 2, or "fresh"'),
    "refresh": SHARE,
    "bank_precision": _one_of(*bank_records.BANK_PRECISIONS),
    "precision": _one_of(*feature_network.PRECISIONS),
    "micro_batch": COUNT_OR_NONE,
    "n_out": COUNT_OR_NONE,
    "n_experts": COUNT,
    "expert_scale": NOT_NEGATIVE,
    "temperature_student": POSITIVE,
    "entropy_scale": NOT_NEGATIVE,
    "temperature_teacher_first": POSITIVE,
    "temperature_teacher": POSITIVE,
    "n_warmup": ((lambda value: _is_whole(value, 0)), "a whole number of at least 0"),
    "center": _one_of("auto", "always", "never"),
    "momentum_base": SHARE,
    "momentum_last": SHARE,
    "infer_with": _one_of("teacher", "student"),
    "strong_color": SHARE,
    "strong_area": ((lambda value: 0 < value <= 1), "above 0, up to 1"),
}


def refuse_out_of_range(settings: Mapping[str, Any]) -> None:
    """Raise at the first setting that cannot be."""
    for name, value in settings.items():
        may_be, expected = RANGES.get(name, (lambda _: True, ""))
        try:
            is_fine = may_be(value)
        except TypeError:  # a word where a number should be
            is_fine = False
        if not is_fine:
            raise JustrightError(f"{name} is {value!r}", expected=expected)
