from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file
from tests.discovery.tiny import SIZES, backbone_of_noise

from justright.discovery.methods import METHODS
from justright.discovery.model_files import BACKBONE_KEYS, REQUIRED_KEYS, about_model, write_backbone
from justright.features.guarded_timm import VisionTransformer
from justright.utils.errors import DataError
from justright.utils.hashing import signed


@pytest.fixture
def saved(uninterrupted, tmp_path):
    uninterrupted("simgcd", n_epochs=1).method.save(tmp_path / "model")
    return tmp_path / "model"


def load(folder, backbone=None):
    return METHODS["simgcd"].load(folder, backbone or backbone_of_noise())


def test_load_rejects_another_frozen_part(saved):
    with pytest.raises(DataError, match=r"(?s)frozen part of this tiny is not the one.*same checkpoint and resolution"):
        load(saved, backbone_of_noise(seed=1))
    with pytest.raises(DataError, match="frozen part"):
        load(saved, backbone_of_noise(depth=3))


def test_load_ignores_the_tuned_part_of_the_given_backbone(saved):
    tuned = backbone_of_noise()
    next(tuned.tuned_parameters()).data += 1
    state = load(saved, tuned).backbone_.tuned_state()
    assert all(torch.equal(tensor, load(saved).backbone_.tuned_state()[name]) for name, tensor in state.items())


@pytest.mark.parametrize("place", [0, 4, 60, 0.3, 0.6, -1])
def test_load_detects_a_flipped_bit(saved, place):
    path = saved / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[int(place * len(content)) if isinstance(place, float) else place] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"model\.safetensors cannot be read"):
        load(saved)


@pytest.mark.parametrize("n_bytes", [0, 30, 500, -1])
def test_load_rejects_truncated_tensors(saved, n_bytes):
    path = saved / "model.safetensors"
    path.write_bytes(path.read_bytes()[:n_bytes])
    with pytest.raises(DataError, match=r"model\.safetensors cannot be read"):
        load(saved)


def test_missing_files_raise(saved, tmp_path):
    with pytest.raises(DataError, match=r"(?s)there is no model\.json.*justright discover"):
        load(tmp_path / "nowhere")
    (saved / "model.safetensors").unlink()
    with pytest.raises(DataError, match=r"model\.safetensors cannot be read"):
        load(saved)


@pytest.mark.parametrize("content", ["", "{", "[]", "3", '{"format": "other"}', "\0\0"])
def test_load_rejects_damaged_json(saved, content):
    (saved / "model.json").write_text(content)
    with pytest.raises(DataError, match="does not describe a model of this version"):
        load(saved)


@pytest.mark.parametrize("name", sorted(BACKBONE_KEYS))
def test_load_rejects_missing_backbone_keys(saved, name):
    about = json.loads((saved / "model.json").read_text())
    del about["backbone"][name]
    (saved / "model.json").write_text(json.dumps(signed(about)))
    with pytest.raises(DataError, match=f"{name} is missing"):
        load(saved)


@pytest.mark.parametrize("name", sorted(REQUIRED_KEYS))
def test_load_rejects_missing_keys(saved, name):
    about = json.loads((saved / "model.json").read_text())
    del about[name]
    (saved / "model.json").write_text(json.dumps(about))
    with pytest.raises(DataError, match=f"{name} is missing"):
        load(saved)


def test_json_has_all_required_keys(saved):
    about = about_model(saved)
    assert about["method"] == "simgcd"
    assert about["backbone"]["name"] == "tiny"
    assert about["backbone"]["resolution"] == 16
    assert about["categories"][0] == {"name": "0", "kind": "known"}
    assert about["config"]["n_epochs"] == 1
    assert about.keys() >= REQUIRED_KEYS


def test_exported_backbone_loads_into_timm(backbone, uninterrupted, tmp_path):
    method = uninterrupted("simgcd").method
    write_backbone(tmp_path / "backbone.safetensors", method.backbone_)
    plain = VisionTransformer(**SIZES)
    plain.load_state_dict(load_file(tmp_path / "backbone.safetensors"))
    images = torch.randn(3, 3, 16, 16)
    with torch.no_grad():
        torch.testing.assert_close(plain.eval()(images), method.backbone_(images), rtol=1e-4, atol=1e-5)
        assert not torch.allclose(method.backbone_(images), backbone(images), rtol=1e-3)
