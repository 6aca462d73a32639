"""Prefix and suffix of every kind of network agree with the whole network."""

from __future__ import annotations

import copy

import pytest
import torch
from tests.features.tiny_vits import EXACT, MODELS, SMALL, tiny

from justright.data.transforms import ImageRecipe
from justright.features.backbone import Backbone
from justright.features.guarded_timm import timm


@pytest.fixture
def images():
    return torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("kind", MODELS)
def test_prefix_and_suffix_agree_with_timm(kind, images):
    model = tiny(**MODELS[kind])
    expected = model(images)
    backbone = Backbone(model, "tiny", SMALL)
    assert backbone.stored_names == (("n", "x_0") if kind in EXACT else ("tokens",))
    assert backbone.dim == 24
    torch.testing.assert_close(backbone(images), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(backbone.suffix(backbone.prefix(images)), expected, rtol=1e-5, atol=1e-5)


def rotary():
    """Positions that rotate queries and keys; the network passes them to every block."""
    sizes = {"img_size": 64, "patch_size": 16, "embed_dim": 32, "depth": 2, "num_heads": 2, "num_classes": 0}
    return timm.models.eva.Eva(use_rot_pos_emb=True, use_abs_pos_emb=False, **sizes)


OTHERS = {
    "residual": lambda: timm.create_model("test_resnet", num_classes=0),
    "efficient": lambda: timm.create_model("test_efficientnet", num_classes=0),
    "convnext": lambda: timm.create_model("test_convnext", num_classes=0),
    "rotary": rotary,
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_networks_are_cut_exactly(kind):
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


@pytest.mark.parametrize(
    ("kind", "tuned"), [("efficient", ("conv_head", "bn2")), ("residual", ("layer4",)), ("convnext", ("stages.3",))]
)
def test_convolutions_after_the_last_stage_are_tuned_instead(kind, tuned):
    backbone = Backbone(OTHERS[kind]().eval(), kind, ImageRecipe(resolution=64, resize=64))
    assert backbone.cut.tuned[: len(tuned)] == tuned
    assert all(path.startswith(("conv_head", "bn2")) for path in backbone.cut.tuned) == (kind == "efficient")


def test_network_that_cannot_be_cut_is_completely_frozen(caplog):
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


@pytest.mark.parametrize("kind", EXACT)
def test_gradients_agree_with_the_uncut_network(kind, images):
    backbone = Backbone(tiny(**MODELS[kind]), "tiny", SMALL)
    plain = copy.deepcopy(backbone.model)
    backbone(images).pow(2).sum().backward()
    plain(images).pow(2).sum().backward()
    plain_gradients = {name: p.grad for name, p in plain.named_parameters() if p.grad is not None}
    for name, parameter in backbone.model.named_parameters():
        if parameter.requires_grad:
            torch.testing.assert_close(parameter.grad, plain_gradients[name], rtol=1e-3, atol=1e-4)
