from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from justright.losses.classification import log_probability
from justright.losses.heads import ProjectionHead, PrototypeClassifier, cosine_logits, random_vectors


def test_equals_a_weight_normed_linear_layer():
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


def test_computes_in_float32_under_autocast():
    generator = torch.Generator().manual_seed(0)
    rows, vectors = torch.randn(5, 64, generator=generator), torch.randn(3, 64, generator=generator)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert cosine_logits(rows.bfloat16(), vectors).dtype == torch.float32
        under_autocast = cosine_logits(rows, vectors)
    assert torch.equal(under_autocast, cosine_logits(rows, vectors))


def test_vectors_are_drawn_like_weights_of_a_linear_layer():
    vectors = random_vectors(2000, 16, torch.Generator().manual_seed(0))
    assert vectors.abs().max() <= 0.25
    assert torch.allclose(vectors.std(), nn.Linear(16, 2000).weight.std(), rtol=0.03)


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
            parameter.normal_(generator=torch.Generator().manual_seed(1))  # larger than the initial ones
    feature = torch.randn(1, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    assert network(feature)[0].tolist() == pytest.approx(head_as_loops(network, feature[0].tolist()), rel=1e-10)


def test_layers_of_the_simgcd_head_have_the_requested_sizes():
    shapes = [tuple(p.shape) for name, p in ProjectionHead(768, 2048, 256).named_parameters() if "weight" in name]
    assert shapes == [(2048, 768), (2048, 2048), (256, 2048)]


def test_starts_with_small_weights_and_no_bias():
    network = ProjectionHead(64, 128, 32)
    for layer in network.layers[::2]:
        assert layer.weight.std().item() == pytest.approx(0.02, rel=0.1)
        assert not layer.bias.any()


def test_output_of_the_gcd_head_is_cosines_with_learned_vectors():
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


def eq_3_as_loops(feature, prototypes, temperature):
    def norm(v):
        return math.sqrt(sum(x * x for x in v))

    cosines = [sum(x * y for x, y in zip(feature, c, strict=True)) / (norm(feature) * norm(c)) for c in prototypes]
    exponentials = [math.exp(cosine / temperature) for cosine in cosines]
    return [e / sum(exponentials) for e in exponentials]


@pytest.fixture
def classifier() -> PrototypeClassifier:
    return PrototypeClassifier(5, 6, torch.Generator().manual_seed(0)).double()


@pytest.fixture
def features() -> torch.Tensor:
    return torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("temperature", [1.0, 0.1, 0.04])
def test_agrees_with_eq_3_written_as_loops(classifier, features, temperature):
    p = log_probability(classifier(features), temperature).exp()
    for view in range(2):
        for i in range(3):
            expected = eq_3_as_loops(features[view, i].tolist(), classifier.prototypes.tolist(), temperature)
            assert p[view, i].tolist() == pytest.approx(expected, rel=1e-10)


def test_gradient_agrees_with_finite_differences(classifier, features):
    def logits(features, prototypes):
        return torch.func.functional_call(classifier, {"prototypes": prototypes}, features)

    prototypes = classifier.prototypes.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(logits, (features.requires_grad_(), prototypes))


def test_logits_are_cosines_for_any_length(classifier, features):
    logits = classifier(features)
    assert logits.shape == (2, 3, 5)
    assert logits.abs().max() <= 1
    with torch.no_grad():
        classifier.prototypes *= torch.arange(1, 6)[:, None]
    assert torch.allclose(classifier(7 * features), logits)


def test_the_prototypes_are_its_only_parameters_and_all_are_trained(classifier):
    assert [(name, p.requires_grad) for name, p in classifier.named_parameters()] == [("prototypes", True)]


def test_the_same_generator_draws_the_same_prototypes():
    a, b = (PrototypeClassifier(4, 768, torch.Generator().manual_seed(3)) for _ in range(2))
    assert a.prototypes.shape == (4, 768)
    assert torch.equal(a.prototypes, b.prototypes)


def test_half_precision_features_are_close_to_single(classifier, features):
    classifier, features = classifier.float(), features.float()
    for dtype in (torch.bfloat16, torch.float16):
        assert torch.allclose(classifier(features.to(dtype)), classifier(features), atol=5e-3)
