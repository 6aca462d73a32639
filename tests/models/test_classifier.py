from __future__ import annotations

import math

import pytest
import torch

from justright.models import PrototypeClassifier


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
    p = classifier.probability(features, temperature)
    for view in range(2):
        for i in range(3):
            expected = eq_3_as_loops(features[view, i].tolist(), classifier.prototypes.tolist(), temperature)
            assert p[view, i].tolist() == pytest.approx(expected, rel=1e-10)


def test_gradient_agrees_with_finite_differences(classifier, features):
    def logits(features, prototypes):
        return torch.func.functional_call(classifier, {"prototypes": prototypes}, features)

    prototypes = classifier.prototypes.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(logits, (features.requires_grad_(), prototypes))


def test_logits_are_cosines_whatever_the_lengths(classifier, features):
    logits = classifier(features)
    assert logits.shape == (2, 3, 5)
    assert logits.abs().max() <= 1
    with torch.no_grad():
        classifier.prototypes *= torch.arange(1, 6)[:, None]
    assert torch.allclose(classifier(7 * features), logits)


def test_the_prototypes_are_its_only_parameters_and_all_are_trained(classifier):
    assert [(name, p.requires_grad) for name, p in classifier.named_parameters()] == [("prototypes", True)]


def test_the_same_generator_draws_the_same_prototypes():
    a, b = (PrototypeClassifier(4, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert a.prototypes.shape == (4, 768)
    assert torch.equal(a.prototypes, b.prototypes)


def test_half_precision_features_are_close_to_single(classifier, features):
    classifier, features = classifier.float(), features.float()
    for dtype in (torch.bfloat16, torch.float16):
        assert torch.allclose(classifier(features.to(dtype)), classifier(features), atol=5e-3)
