"""A convolution and its batch norm as one operation: the same features, gradients and state dicts."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn

from justright.data.transforms import ImageRecipe
from justright.features.backbone import Backbone
from justright.features.cuts import normed_conv
from justright.features.guarded_timm import BatchNormAct2d, timm


def network(name):
    """Random parameters and statistics, because new batch norms are the identity."""
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=0).eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 2.0)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.1)
    return model


@pytest.fixture
def images():
    return torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(1))


def backbone_of(name):
    return Backbone(network(name), name, ImageRecipe(32, 32))


@pytest.mark.parametrize(
    "options", [{"kernel_size": 1}, {"kernel_size": 3, "padding": 1}, {"kernel_size": 3, "groups": 4}]
)
@pytest.mark.parametrize("kind", [nn.BatchNorm2d, BatchNormAct2d])
def test_fused_layer_agrees_with_two_layers(options, kind):
    torch.manual_seed(0)
    conv, norm = nn.Conv2d(4, 8, **options), kind(8).eval()
    norm.running_mean.normal_(0, 0.1)
    norm.running_var.uniform_(0.5, 2.0)
    nn.init.uniform_(norm.weight, 0.5, 1.5)
    x, parameters = torch.randn(3, 4, 6, 6), [*conv.parameters(), *norm.parameters()]
    output, expected = normed_conv(conv, norm, x), norm(conv(x))
    torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-5)
    pairs = (torch.autograd.grad(y.pow(2).sum(), parameters) for y in (output, expected))
    for one, other in zip(*pairs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "is_fused"), [("test_efficientnet", True), ("test_resnet", False), ("test_convnext", False)]
)
def test_backbone_agrees_with_timm(name, is_fused, images):
    backbone = backbone_of(name)
    assert (backbone.cut.norm is not None) == is_fused
    torch.testing.assert_close(backbone(images), network(name)(images), rtol=1e-4, atol=1e-4)


def test_state_dict_is_unchanged():
    backbone, plain = backbone_of("test_efficientnet"), network("test_efficientnet")
    state = backbone.full_state_dict()
    assert state.keys() == plain.state_dict().keys()
    assert all(torch.equal(state[name], tensor) for name, tensor in plain.state_dict().items())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda backbone: pickle.loads(pickle.dumps(backbone))])
def test_copy_uses_its_own_norms(copied, images):
    backbone = backbone_of("test_efficientnet")
    other = copied(backbone)
    before, features = backbone(images).detach(), other(images).detach()
    assert torch.equal(before, features)
    with torch.no_grad():
        other.model.bn2.weight.mul_(1.5)
    assert torch.equal(backbone(images), before)
    assert not torch.allclose(other(images), before)
