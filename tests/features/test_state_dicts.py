from __future__ import annotations

import json
import os
import pickle

import pytest
import torch
from safetensors.torch import save_file

from justright.features.backbone import load_backbone
from justright.features.guarded_timm import timm
from justright.features.networks import by_order, positions_for, read, with_timm_names
from justright.utils.errors import JustrightError

REVERSED = {
    "dinov2": {"norm1": "norm1", "norm2": "norm2", "mlp.fc1": "mlp.fc1", "mlp.fc2": "mlp.fc2"},
    "vit": {
        "norm1": "layernorm_before",
        "norm2": "layernorm_after",
        "mlp.fc1": "intermediate.dense",
        "mlp.fc2": "output.dense",
    },
}


def model(**options):
    torch.manual_seed(0)
    sizes = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 3, "num_classes": 0}
    return timm.create_model("vit_tiny_patch16_224", **sizes | options).eval()


def as_transformers(state, kind, prefix=""):
    """timm's tensors under the names of transformers' Dinov2Model or ViTModel, written out by hand."""
    theirs = {
        "embeddings.cls_token": state["cls_token"],
        "embeddings.position_embeddings": state["pos_embed"],
        "embeddings.patch_embeddings.projection.weight": state["patch_embed.proj.weight"],
        "embeddings.patch_embeddings.projection.bias": state["patch_embed.proj.bias"],
        "layernorm.weight": state["norm.weight"],
        "layernorm.bias": state["norm.bias"],
    }
    if kind == "dinov2":
        theirs["embeddings.mask_token"] = torch.zeros(1, 24)
    else:
        theirs |= {"pooler.dense.weight": torch.zeros(24, 24), "pooler.dense.bias": torch.zeros(24)}
    for number in range(2):
        ours, layer = f"blocks.{number}", f"encoder.layer.{number}"
        for end in ("weight", "bias"):
            q, k, v = state[f"{ours}.attn.qkv.{end}"].chunk(3)
            for name, part in (("query", q), ("key", k), ("value", v)):
                theirs[f"{layer}.attention.attention.{name}.{end}"] = part.contiguous()
            theirs[f"{layer}.attention.output.dense.{end}"] = state[f"{ours}.attn.proj.{end}"]
            for name, other in REVERSED[kind].items():
                theirs[f"{layer}.{other}.{end}"] = state[f"{ours}.{name}.{end}"]
        if kind == "dinov2":
            theirs[f"{layer}.layer_scale1.lambda1"] = state[f"{ours}.ls1.gamma"]
            theirs[f"{layer}.layer_scale2.lambda1"] = state[f"{ours}.ls2.gamma"]
    return {prefix + name: tensor for name, tensor in theirs.items()}


@pytest.mark.parametrize(("kind", "prefix"), [("dinov2", ""), ("dinov2", "dinov2."), ("vit", ""), ("vit", "vit.")])
def test_transformers_names_become_timm_names(kind, prefix):
    expected = model(init_values=0.5 if kind == "dinov2" else None).state_dict()
    renamed = with_timm_names(as_transformers(expected, kind, prefix))
    assert renamed.keys() == expected.keys()
    assert all(torch.equal(renamed[name], expected[name]) for name in expected)


@pytest.mark.parametrize("layout", ["facebook", "transformers"])
def test_class_position_is_added_to_the_class_token_with_registers(layout):
    plain = model(init_values=0.5).state_dict()
    registers = torch.randn(1, 4, 24)
    if layout == "facebook":
        theirs = plain | {"register_tokens": registers, "mask_token": torch.zeros(1, 24)}
    else:
        theirs = as_transformers(plain, "dinov2") | {"embeddings.register_tokens": registers}
    target = model(init_values=0.5, reg_tokens=4, no_embed_class=True)
    target.load_state_dict(with_timm_names(theirs))
    assert torch.equal(target.reg_token, registers)
    # the tokens that enter the first block: class with its position, registers without, patches with theirs
    images = torch.randn(1, 3, 32, 32)
    entering = target._pos_embed(target.patch_embed(images))
    original = model(init_values=0.5)
    without = original._pos_embed(original.patch_embed(images))
    torch.testing.assert_close(entering[:, :1], without[:, :1])
    torch.testing.assert_close(entering[:, 5:], without[:, 1:])


def test_attention_without_keys_raises():
    theirs = as_transformers(model().state_dict(), "vit")
    del theirs["encoder.layer.1.attention.attention.key.weight"]
    with pytest.raises(JustrightError, match="lacks one of query, key, value"):
        with_timm_names(theirs)


def test_hugging_face_directory_loads_in_either_format(tmp_path):
    original = timm.create_model("test_vit", num_classes=0).eval()
    save_file(original.state_dict(), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"architecture": "test_vit", "num_classes": 0}))
    images = torch.randn(1, 3, 160, 160)
    backbone = load_backbone("test_vit", checkpoint=tmp_path)
    torch.testing.assert_close(backbone(images), original(images), rtol=1e-4, atol=1e-5)
    (tmp_path / "config.json").write_text(json.dumps({"architecture": "resnet18"}))
    with pytest.raises(JustrightError, match="holds a resnet18"):
        load_backbone("test_vit", checkpoint=tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(JustrightError, match=r"expected|Expected: model.safetensors"):
        read(tmp_path)


def test_wrapped_pth_file_of_tensors_is_read(tmp_path):
    state = model().state_dict()
    wrapped = {"teacher": {f"module.backbone.{name}": tensor for name, tensor in state.items()}, "epoch": 3}
    torch.save(wrapped, tmp_path / "x.pth")
    assert with_timm_names(read(tmp_path / "x.pth")).keys() == state.keys()


class Attack:
    def __reduce__(self):
        return os.system, ("exit 1",)


@pytest.mark.parametrize("how", ["torch", "pickle"])
def test_pickle_that_needs_code_is_not_opened(tmp_path, how):
    file = tmp_path / "x.pth"
    if how == "torch":
        torch.save({"a": Attack()}, file)
    else:
        file.write_bytes(pickle.dumps(Attack()))
    with pytest.raises(JustrightError, match="could run code"):
        read(file)


@pytest.mark.parametrize("name", ["x.pth", "x.safetensors"])
def test_damaged_file_raises_with_its_name(tmp_path, name):
    for content in (b"", b"\x00" * 100):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(JustrightError, match=name):
            read(tmp_path / name)


def test_by_order_requires_as_many_tensors():
    own = model()
    anonymous = {f"t{number}": tensor for number, tensor in enumerate(own.state_dict().values())}
    assert by_order(anonymous, own).keys() == own.state_dict().keys()
    with pytest.raises(JustrightError, match="a checkpoint of"):
        by_order({"t0": torch.zeros(1)}, own)


def test_positions_are_resized_without_their_prefix():
    positions = torch.randn(1, 1 + 37 * 37, 8)
    for antialiased in (True, False):
        resized = positions_for(positions, 1, (16, 16), antialiased=antialiased)
        assert resized.shape == (1, 257, 8)
        assert torch.equal(resized[:, 0], positions[:, 0])
    assert positions_for(positions, 1, (37, 37), antialiased=True) is positions
    timms = timm.layers.resample_abs_pos_embed(positions, [16, 16], num_prefix_tokens=1)
    torch.testing.assert_close(positions_for(positions, 1, (16, 16), antialiased=True), timms)
    with pytest.raises(JustrightError, match="square grid"):
        positions_for(torch.zeros(1, 11, 8), 1, (4, 4), antialiased=True)


def test_dinov2_without_registers_resizes_positions_as_its_authors_do():
    # a ramp over the columns shows from which place each new patch reads; with 37 / 16 the last is off by 0.2
    ramp = torch.arange(37.0).expand(37, 37).reshape(1, 37 * 37, 1)
    row = positions_for(ramp, 0, (16, 16), antialiased=False)[0, 8 * 16 : 9 * 16, 0]
    factor = 37 / 16.1
    expected = (torch.arange(16) + 0.5) * factor - 0.5
    torch.testing.assert_close(row[1:-1], expected[1:-1], rtol=0, atol=0.06)
