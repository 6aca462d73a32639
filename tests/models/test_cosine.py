from __future__ import annotations

import torch
from torch import nn

from justright.models import cosine_logits
from justright.models.cosine import random_vectors


def test_is_a_weight_normed_linear_layer_of_gain_1_with_the_same_gradient():
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(5, 4, generator=generator, dtype=torch.float64)
    vectors = torch.randn(3, 4, generator=generator, dtype=torch.float64)
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3, bias=False, dtype=torch.float64))
    gain, direction = layer.parametrizations.weight.original0, layer.parametrizations.weight.original1
    with torch.no_grad():
        gain.fill_(1.0)
        direction.copy_(vectors)
    theirs = layer(nn.functional.normalize(rows, dim=-1))
    ours = cosine_logits(rows, vectors.requires_grad_())
    assert torch.allclose(ours, theirs)
    theirs.square().sum().backward()
    ours.square().sum().backward()
    assert torch.allclose(vectors.grad, direction.grad)


def test_stays_in_single_precision_under_autocast_and_for_half_precision_rows():
    generator = torch.Generator().manual_seed(0)
    rows, vectors = torch.randn(5, 64, generator=generator), torch.randn(3, 64, generator=generator)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert cosine_logits(rows.bfloat16(), vectors).dtype == torch.float32
        under_autocast = cosine_logits(rows, vectors)
    assert torch.equal(under_autocast, cosine_logits(rows, vectors))


def test_vectors_are_drawn_as_those_of_a_linear_layer():
    vectors = random_vectors(2000, 16, torch.Generator().manual_seed(0))
    assert vectors.abs().max() <= 0.25
    assert torch.allclose(vectors.std(), nn.Linear(16, 2000).weight.std(), rtol=0.03)
