"""Batch norms that convolutions do on the way: the same features, gradients and state dicts."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn

from justright.data.transforms import ImageRecipe
from justright.features.backbone import Backbone
from justright.features.fused_norms import NormedConv, folded, fuse_norms, norm_pairs, plain_again
from justright.features.guarded_timm import timm


def network(name):
    """Random parameters and statistics: fresh batch norms do nothing."""
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


def n_fused(backbone):
    return sum(isinstance(module, NormedConv) for module in backbone.model.modules())


@pytest.mark.parametrize(
    ("name", "tuned"), [("test_efficientnet", ["blocks", "conv_head"]), ("test_resnet", ["layer4"])]
)
def test_features_and_gradients_are_those_of_the_network_as_timm_has_it(name, tuned, images):
    fused, plain = network(name), network(name)
    fuse_norms(fused, tuned, images)
    convs = [module for module in fused.modules() if isinstance(module, NormedConv)]
    # one pixel wide and wider ones, and such as see their own channel alone
    assert {conv.kernel_size for conv in convs} == {(1, 1), (3, 3)}
    assert any(conv.groups > 1 for conv in convs) == (name == "test_efficientnet")
    found, expected = fused(images), plain(images)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    found.pow(2).sum().backward()
    expected.pow(2).sum().backward()
    parameters = dict(plain.named_parameters())
    for path, parameter in fused.named_parameters():
        size = parameters[path].grad.abs().max().item()
        torch.testing.assert_close(parameter.grad, parameters[path].grad, rtol=1e-3, atol=1e-4 * size)


def test_a_backbone_is_fused_where_it_is_tuned(images):
    backbone, plain = backbone_of("test_efficientnet"), network("test_efficientnet")
    assert n_fused(backbone) == 1
    torch.testing.assert_close(backbone(images), plain(images), rtol=1e-4, atol=1e-5)


def test_a_network_without_batch_norms_stays_as_it_is():
    assert n_fused(backbone_of("test_convnext")) == 0


def test_names_and_tensors_of_a_state_dict_stay_what_they_are():
    backbone, plain = backbone_of("test_efficientnet"), network("test_efficientnet")
    state = backbone.full_state_dict()
    assert state.keys() == plain.state_dict().keys()
    assert all(torch.equal(state[name], tensor) for name, tensor in plain.state_dict().items())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda backbone: pickle.loads(pickle.dumps(backbone))])
def test_a_copy_reads_its_own_norms(copied, images):
    backbone = backbone_of("test_efficientnet")
    other = copied(backbone)
    before, features = backbone(images).detach(), other(images).detach()
    assert torch.equal(before, features)
    with torch.no_grad():
        for module in other.model.modules():
            if isinstance(module, NormedConv):
                module.norm[0].weight.mul_(1.5)
    assert torch.equal(backbone(images), before)
    assert not torch.allclose(other(images), before)


def test_what_is_fused_can_be_folded_for_good(images):
    backbone = backbone_of("test_efficientnet")
    fast = folded(backbone.model, images)
    assert fast is not backbone.model
    assert not any(isinstance(module, nn.BatchNorm2d | NormedConv) for module in fast.modules())
    torch.testing.assert_close(fast(images), backbone.model(images), rtol=1e-3, atol=1e-4)


def test_only_pairs_of_the_tuned_part_are_fused(images):
    model = network("test_efficientnet")
    pairs = norm_pairs(model, images)
    fuse_norms(model, ["conv_head"], images)
    fused = [path for path, module in model.named_modules() if isinstance(module, NormedConv)]
    assert fused == ["conv_head"]
    assert ("conv_head", "bn2") in pairs
    plain_again(model.conv_head)
    assert type(model.conv_head) is nn.Conv2d


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
