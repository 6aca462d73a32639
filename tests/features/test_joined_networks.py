"""Two networks side by side: one is a ViT of 16 pixels, the other a conv net of 32 with other colors."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from tests.discovery.tiny import SIZES, Stopped, drawn_split, final_bytes, learned, stop_after
from tests.features.tiny_banks import bank_of
from torch.nn.functional import interpolate, normalize

from justright.data.recipe import ImageRecipe
from justright.discovery import loop, simgcd_config
from justright.discovery.methods import METHODS
from justright.features.backbone import Backbone, load_backbone, random_backbone
from justright.features.extract import extract
from justright.features.guarded_timm import VisionTransformer, timm
from justright.features.joined_networks import JoinedNetworks
from justright.utils.errors import DataError, JustrightError

VIT_RECIPE = ImageRecipe(resolution=16, resize=18)
CONV_RECIPE = ImageRecipe(resolution=32, resize=36, mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.5))


def networks():
    torch.manual_seed(0)
    return VisionTransformer(**SIZES).eval(), timm.create_model("test_resnet", num_classes=0).eval()


def both() -> Backbone:
    model = JoinedNetworks(networks(), [VIT_RECIPE, CONV_RECIPE])
    return Backbone(model, "vit+conv", model.recipe)


@pytest.fixture
def images():
    return torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(1))


def test_features_are_those_of_each_network_at_its_size_and_in_its_colors_at_one_length(images):
    vit, conv = networks()
    mean, std = (torch.tensor(each).view(3, 1, 1) for each in (CONV_RECIPE.mean, CONV_RECIPE.std))
    colors = interpolate(images * std + mean, size=(16, 16), mode="bicubic", antialias=True)
    own_mean, own_std = (torch.tensor(each).view(3, 1, 1) for each in (VIT_RECIPE.mean, VIT_RECIPE.std))
    with torch.no_grad():
        parts = [normalize(vit((colors - own_mean) / own_std), dim=1), normalize(conv(images), dim=1)]
        found = both()(images)
    dim = sum(part.shape[1] for part in parts)
    torch.testing.assert_close(found, (dim / 2) ** 0.5 * torch.cat(parts, dim=1), rtol=1e-4, atol=1e-4)
    assert found.pow(2).mean().item() == pytest.approx(1, rel=1e-4)
    assert both().dim == dim


def test_each_network_is_cut_and_tuned_at_its_own_last_part(images):
    backbone = both()
    assert backbone.recipe == CONV_RECIPE
    assert backbone.stored_names == ("0.n", "0.x_0", "1.map")
    assert not backbone.cut.ends_in_norm
    backbone(images).sum().backward()
    with_gradient = {name for name, parameter in backbone.model.named_parameters() if parameter.grad is not None}
    assert with_gradient == set(backbone.tuned_state())
    assert {".".join(name.split(".")[:4]) for name in with_gradient} == {"networks.0.blocks.1", "networks.1.layer4.0"}


def test_the_fingerprint_names_both_networks():
    whole = both()
    for number in (0, 1):
        other = copy.deepcopy(whole)
        next(other.model.networks[number].parameters()).data.add_(1)
        assert other.fingerprint != whole.fingerprint
        assert other.prefix_fingerprint != whole.prefix_fingerprint
    model = JoinedNetworks(networks(), [ImageRecipe(resolution=16, resize=18, interpolation="bilinear"), CONV_RECIPE])
    assert Backbone(model, "vit+conv", model.recipe).fingerprint != whole.fingerprint


@pytest.mark.parametrize(("precision", "tolerance"), [("float16", 1e-3), ("int8", 2e-2)])
def test_a_bank_keeps_the_large_tensors_of_both_in_few_bits(tmp_path, precision, tolerance):
    rows, views = np.array([5, 0, 3]), np.array([1, 0, 1])
    sizes = {"backbone": both(), "n_views": 2}
    exact = bank_of(tmp_path, **sizes).build()
    small = bank_of(tmp_path, precision=precision, **sizes).build()
    for given, expected in zip(small.batch(rows, views), exact.batch(rows, views), strict=True):
        assert (given - expected).abs().max() <= tolerance * expected.abs().max()
    assert [small.layout[name].base == np.float32 for name in ("0.n", "0.x_0", "1.map")] == [False, True, False]
    assert small.n_bytes < 0.6 * exact.n_bytes


def two_conv_nets() -> Backbone:
    """What the faster runtime takes both prefixes of, where it is installed."""
    torch.manual_seed(0)
    nets = [timm.create_model(name, num_classes=0).eval() for name in ("test_resnet", "test_efficientnet")]
    model = JoinedNetworks(nets, [CONV_RECIPE, CONV_RECIPE])
    return Backbone(model, "conv+conv", model.recipe)


@pytest.mark.parametrize("made", [both, two_conv_nets])
def test_extracted_features_are_those_of_the_backbone(tmp_path, made):
    split, backbone = drawn_split(per_class=2), made()
    table = extract(split.unlabeled, backbone, tmp_path / "features", batch_size=4)
    seen = torch.stack([backbone.recipe.preprocess(split.unlabeled.image(row)) for row in range(len(split.unlabeled))])
    with torch.no_grad():
        np.testing.assert_allclose(table.features, backbone(seen).numpy(), rtol=1e-3, atol=1e-3)
    with pytest.raises(DataError, match="no patches"):
        extract(split.unlabeled, backbone, tmp_path / "patches", batch_size=4, pooling="patches")


def test_both_are_trained_resumed_saved_and_used_again(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)
    for name in ("FEWEST_STEPS_OF_HEADS", "STEPS_OF_HEADS_A_CATEGORY"):
        monkeypatch.setattr(simgcd_config, name, 1)
    split, bank, backbone = drawn_split(), tmp_path / "bank", both()
    method = learned("simgcd", split, backbone, bank, tmp_path / "whole", n_steps=2)
    before, after = backbone.tuned_state(), method.backbone_.tuned_state()
    for network in ("networks.0.", "networks.1."):
        assert any(not torch.equal(before[name], after[name]) for name in before if name.startswith(network))
    with pytest.raises(Stopped):
        learned("simgcd", split, backbone, bank, tmp_path / "cut", n_steps=2, fit=stop_after(3))
    learned("simgcd", split, backbone, bank, tmp_path / "cut", n_steps=2)
    assert final_bytes(tmp_path / "cut") == final_bytes(tmp_path / "whole")
    method.save(tmp_path / "model")
    loaded = METHODS["simgcd"].load(tmp_path / "model", both())
    assert loaded.predict(split.unlabeled, neither=0.0).cluster.tolist() == method.labels_.tolist()


def test_two_names_with_a_plus_are_both_networks(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    one, two = load_backbone("glyph_vit"), load_backbone("glyph_vit+glyph_vit")
    assert two.name == "glyph_vit+glyph_vit"
    assert two.dim == 2 * one.dim
    assert two.cut.ends_in_norm
    with pytest.raises(JustrightError, match="one checkpoint"):
        load_backbone("glyph_vit+glyph_vit", tmp_path / "file.safetensors")
    with pytest.raises(JustrightError, match="'glyph_vot'"):
        load_backbone("glyph_vit+glyph_vot")


def test_another_resolution_is_that_of_the_largest_and_the_others_keep_their_share():
    name = "test_resnet.r160_in1k+glyph_vit"
    own = [recipe.resolution for recipe in random_backbone(name).model.recipes]
    double = [recipe.resolution for recipe in random_backbone(name, img_size=2 * max(own)).model.recipes]
    assert own[0] != own[1]
    assert double == [2 * own[0], 2 * own[1]]
