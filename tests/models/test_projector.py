from __future__ import annotations

import math

import pytest
import torch

from justright.models import ProjectionHead


def head(**options) -> ProjectionHead:
    return ProjectionHead(6, 9, 4, generator=torch.Generator().manual_seed(0), **options)


def head_as_loops(head, feature):
    x = feature
    linear = [layer for layer in head.layers if hasattr(layer, "weight")]
    for number, layer in enumerate(linear):
        x = [
            sum(w * v for w, v in zip(row, x, strict=True)) + b
            for row, b in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)
        ]
        if number < len(linear) - 1:
            x = [v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in x]
    return x


def test_agrees_with_three_layers_written_as_loops():
    network = head().double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(generator=torch.Generator().manual_seed(1))  # beyond the small first weights, biases too
    feature = torch.randn(1, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    assert network(feature)[0].tolist() == pytest.approx(head_as_loops(network, feature[0].tolist()), rel=1e-10)


def test_the_default_is_the_head_of_simgcd():
    shapes = [tuple(p.shape) for name, p in ProjectionHead().named_parameters() if "weight" in name]
    assert shapes == [(2048, 768), (2048, 2048), (256, 2048)]


def test_starts_with_small_weights_and_no_bias():
    network = ProjectionHead(64, 128, 32)
    for layer in network.layers[::2]:
        assert layer.weight.std().item() == pytest.approx(0.02, rel=0.1)
        assert not layer.bias.any()


def test_the_longer_head_of_gcd_gives_cosines_with_learned_vectors():
    network, features = head(n_out=11), torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(1))
    z = network(features)
    assert z.shape == (2, 3, 11)
    expected = torch.cosine_similarity(network.layers(features)[..., None, :], network.vectors, dim=-1)
    assert torch.allclose(z, expected, atol=1e-5)
    z.square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


def test_the_same_generator_draws_the_same_head():
    a, b = head(n_out=5), head(n_out=5)
    assert all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


def test_runs_under_autocast():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert head()(torch.ones(2, 6)).dtype == torch.bfloat16
        assert head(n_out=5)(torch.ones(2, 6)).dtype == torch.float32
