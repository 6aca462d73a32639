from __future__ import annotations

import pytest
import torch
from torch import nn

from justright.features.folding import folded
from justright.features.guarded_timm import timm


def network(name: str) -> nn.Module:
    """Random parameters and random statistics: with fresh ones a batch norm does nothing."""
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=0).eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 2.0)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.1)
    return model


@pytest.mark.parametrize("name", ["tf_efficientnet_lite0", "resnet18"])
def test_folded_features_are_the_same_and_no_batch_norm_is_left(name):
    model, images = network(name), torch.randn(2, 3, 64, 64)
    fast = folded(model, images)
    assert fast is not model
    assert not any(isinstance(module, nn.BatchNorm2d) for module in fast.modules())
    other = torch.randn(3, 3, 64, 64)
    with torch.inference_mode():
        assert torch.allclose(fast(other), model(other), rtol=1e-3, atol=1e-4 * float(model(other).abs().max()))


def test_the_network_itself_is_not_touched():
    model, images = network("resnet18"), torch.randn(1, 3, 64, 64)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    folded(model, images)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_a_network_without_batch_norm_stays_as_it_is():
    model = timm.create_model("vit_tiny_patch16_224", pretrained=False, img_size=32, depth=1, num_classes=0).eval()
    assert folded(model, torch.randn(1, 3, 32, 32)) is model


class Branching(nn.Module):
    """The convolution is read by a batch norm and by a shortcut: folding would change the shortcut."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.norm.running_mean.fill_(3.0)

    def forward_features(self, x):
        made = self.conv(x)
        return made + self.norm(made)


def test_a_network_that_folding_would_change_stays_as_it_is():
    model = Branching().eval()
    assert folded(model, torch.randn(2, 3, 8, 8)) is model
