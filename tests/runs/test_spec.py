from __future__ import annotations

import json
from pathlib import Path

import pytest

from justright.runs.spec import SCALES, RunSpec


def test_a_spec_is_the_same_after_a_way_through_json():
    spec = RunSpec(
        selector_params={"edges": (0.1, 0.9)}, checkpoint=Path("net.safetensors"), settings={"views": "fresh"}
    )
    plain = spec.to_json()
    assert plain == json.loads(json.dumps(plain))
    assert plain["checkpoint"] == "net.safetensors"
    assert plain["selector_params"] == {"edges": [0.1, 0.9]}
    assert plain.keys() == vars(spec).keys()


def test_what_is_no_plain_value_is_refused():
    with pytest.raises(TypeError):
        RunSpec(settings={"views": object()}).to_json()


def test_the_scales_are_those_of_the_spec():
    assert RunSpec().scale in SCALES == ("paper", "full", "small")
