from __future__ import annotations

import subprocess
import sys
from unittest.mock import patch

import pytest
import torch
from safetensors.torch import save_file
from tests.features.tiny_vits import MODELS, SMALL, tiny

from justright.data.transforms import ImageRecipe
from justright.discovery.learner import trainable_copy
from justright.discovery.simgcd import SimGCD
from justright.features.backbone import Backbone, load_backbone, random_backbone
from justright.features.choices import POOLINGS
from justright.features.guarded_timm import timm
from justright.utils.errors import JustrightError
from justright.utils.hashing import hash_pieces


@pytest.fixture
def images():
    return torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(1))


def test_batch_norm_keeps_its_statistics_while_training():
    backbone = Backbone(timm.create_model("test_resnet", num_classes=0), "resnet", ImageRecipe(64, 64)).train()
    before = backbone.full_state_dict()
    backbone(torch.randn(4, 3, 64, 64)).sum().backward()
    after = backbone.full_state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert {name.partition(".")[0] for name in backbone.tuned_state()} == {"layer4"}


@pytest.mark.parametrize("kind", MODELS)
def test_only_the_last_block_is_tuned_without_the_final_norm(kind, images):
    backbone = Backbone(tiny(**MODELS[kind]), "tiny", SMALL)
    backbone(images).sum().backward()
    with_gradient = {name for name, parameter in backbone.model.named_parameters() if parameter.grad is not None}
    assert with_gradient == set(backbone.tuned_state())
    assert all(name.startswith("blocks.2.") for name in with_gradient)
    assert not any(part.requires_grad for part in backbone.prefix(images))


def test_trained_backbone_loads_into_plain_timm(images, tmp_path):
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


def test_tuned_state_restores_the_features(images):
    trained, other = (Backbone(tiny(), "tiny", SMALL) for _ in range(2))
    for parameter in trained.tuned_parameters():
        parameter.data += 0.1
    other.load_tuned_state(trained.tuned_state())
    assert torch.equal(trained(images), other(images))
    with pytest.raises(JustrightError, match="do not match"):
        other.load_tuned_state({})


def test_prefix_fingerprint_survives_tuning():
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


def test_unchanging_network_is_hashed_once_and_its_copy_anew():
    network = Backbone(tiny(), "tiny", SMALL)
    whole, frozen = network.fingerprint, network.prefix_fingerprint
    network.is_unchanging = True
    with patch("justright.features.backbone.hash_pieces", wraps=hash_pieces) as hashing:
        assert [network.fingerprint for _ in range(3)] == [whole] * 3
        assert [network.prefix_fingerprint for _ in range(3)] == [frozen] * 3
        assert hashing.call_count == 2
        tuned = trainable_copy(network)
        next(tuned.tuned_parameters()).data += 1
        assert (tuned.prefix_fingerprint, hashing.call_count) == (frozen, 2)
        assert tuned.fingerprint != whole
        assert network.fingerprint == whole


def test_poolings_read_class_token_mean_and_patches(images):
    backbone = Backbone(tiny(reg_tokens=2), "tiny", SMALL)
    tokens = backbone.model.forward_features(images)
    shapes = [tuple(backbone(images, pooling).shape) for pooling in POOLINGS]
    assert shapes == [(3, 24), (3, 24), (3, 16, 24)]
    torch.testing.assert_close(backbone(images, "patches"), tokens[:, 3:])
    torch.testing.assert_close(backbone(images, "average"), tokens[:, 3:].mean(dim=1))
    torch.testing.assert_close(backbone(images, "class"), tokens[:, 0], rtol=1e-5, atol=1e-5)


def test_importing_features_does_not_import_torch():
    code = "import sys, justright.features; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_random_backbone_has_the_shapes_of_the_trained_one():
    known, random = load_backbone("glyph_vit"), random_backbone("glyph_vit")
    assert (random.dim, random.stored_shapes) == (known.dim, known.stored_shapes)
    assert random.tuned_state().keys() == known.tuned_state().keys()


def test_repr_of_a_method_names_its_network():
    backbone = load_backbone("glyph_vit")
    assert repr(backbone) == "Backbone(glyph_vit: 128 numbers from 64 x 64 pixels, cpu)"
    assert repr(SimGCD(5, backbone)).split() == f"SimGCD(backbone={backbone!r}, n_categories=5)".split()
