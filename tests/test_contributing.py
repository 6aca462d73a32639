"""What CONTRIBUTING says about adding things. The other examples are executed where their family is tested."""

from __future__ import annotations

import pytest
import torch
from tests.contributing_examples import BLOCK, TEXT, example

EXECUTED_IN = {
    "selector": "cli/test_added_selector.py",
    "loss": "test_contributing.py",
    "method": "discovery/test_methods.py",
    "data set": "data/catalog/test_data_set.py",
    "review action": "review/test_actions.py",
}


def test_every_example_is_executed_by_a_test(request):
    assert [thing for thing, _ in BLOCK.findall(TEXT)] == list(EXECUTED_IN)
    for thing, file in EXECUTED_IN.items():
        assert f'example("{thing}")' in (request.path.parent / file).read_text(encoding="utf-8"), file


def test_the_loss_of_the_example_is_weighted_as_a_loop_would_and_leaves_unlabeled_images_out():
    loss = example("loss").WeightedMarginLoss(margin=0.2)
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 5, 4, generator=generator, requires_grad=True)
    labels, weight = torch.tensor([0, 3, -1, 1, -1]), torch.tensor([1.0, 0.5, 7.0, 0.0, 1.0])
    total = 0.0
    for view in range(2):
        for image in (0, 1, 3):
            own = logits[view, image, labels[image]]
            others = [logits[view, image, c] for c in range(4) if c != labels[image]]
            total += weight[image] * max(0.2 - own + max(others), torch.zeros(()))
    value = loss(logits, labels, weight)
    assert value.item() == pytest.approx(total.item() / 6, rel=1e-6)
    value.backward()
    assert logits.grad.isfinite().all()
    assert not logits.grad[:, [2, 3, 4]].any(), "unlabeled images and those of weight 0 teach nothing"
    assert logits.grad[:, :2].any()
