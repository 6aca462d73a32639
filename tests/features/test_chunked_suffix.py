"""The tuned part of a conv net in chunks: the same numbers on any number of cores."""

from __future__ import annotations

import pytest
import torch
from tests.features.test_fused_norms import backbone_of
from torch import nn

from justright.features import chunked_suffix as module
from justright.features.chunked_suffix import chunked_suffix


@pytest.fixture
def backbone(monkeypatch):
    made = backbone_of("test_efficientnet")
    height, width, _ = made.stored_shapes[0]
    monkeypatch.setattr(module, "CHUNK", 4 * height * width)
    return made


def stored(backbone, n=10):
    images = torch.randn(n, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    return backbone.prefix(images)


def gradients(backbone, features):
    backbone.zero_grad()
    features.pow(2).sum().backward()
    return [parameter.grad.clone() for parameter in backbone.tuned_parameters()]


def test_chunks_give_the_features_and_gradients_of_all_views_at_once(backbone):
    views = stored(backbone)
    output, expected = chunked_suffix(backbone, views), backbone.suffix(views)
    assert "InChunks" in type(output.grad_fn).__name__
    torch.testing.assert_close(output, expected, rtol=1e-5, atol=1e-6)
    for one, other in zip(gradients(backbone, output), gradients(backbone, expected), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5 * other.abs().max().item())


def test_unused_parameter_has_no_gradient(backbone):
    stage = backbone.model.get_submodule(backbone.cut.tuned[0])
    stage.register_parameter("unused", nn.Parameter(torch.zeros(2)))
    chunked_suffix(backbone, stored(backbone)).sum().backward()
    assert stage.unused.grad is None
    assert all(p.grad is not None for p in backbone.tuned_parameters() if p is not stage.unused)


def test_number_of_cores_changes_no_bit(backbone):
    views, before, results = stored(backbone), torch.get_num_threads(), []
    try:
        for n_threads in (1, 2, 3):
            torch.set_num_threads(n_threads)
            features = chunked_suffix(backbone, views)
            results.append([features.detach(), *gradients(backbone, features)])
            assert torch.get_num_threads() == n_threads
    finally:
        torch.set_num_threads(before)
    for others in results[1:]:
        assert all(torch.equal(one, other) for one, other in zip(results[0], others, strict=True))


def test_no_chunks_without_gradients_or_in_half_precision(backbone, monkeypatch):
    views = stored(backbone)
    monkeypatch.setattr(module, "_InChunks", None)
    with torch.no_grad():
        assert torch.equal(chunked_suffix(backbone, views), backbone.suffix(views))
    with torch.autocast("cpu", torch.bfloat16):
        assert chunked_suffix(backbone, views).shape == (10, backbone.dim)
    assert chunked_suffix(backbone, stored(backbone, 4)).shape == (4, backbone.dim)
