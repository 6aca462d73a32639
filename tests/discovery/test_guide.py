from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from justright.data.batches import BalancedBatches
from justright.discovery.learner import Guide
from justright.losses import LossParts


def guide_of(n_classes, dim, scale, first_label=3) -> Guide:
    rows = np.arange(4)
    generator = torch.Generator().manual_seed(0)
    return Guide(BalancedBatches(rows, rows[:0], 2), first_label, n_classes, dim, scale, generator)


def test_guide_agrees_with_eq_4_as_loops():
    guide = guide_of(n_classes=3, dim=6, scale=0.35)
    features = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(1))
    labels, weight = torch.tensor([3, 5, 4, 3]), torch.tensor([1.0, 0.2, 0.7, 2.0])
    found = guide.added_to(LossParts(torch.tensor(1.5), {}), guide(features), labels, weight)
    prototypes, total = normalize(guide.classifier.prototypes.detach(), dim=1), 0.0
    for view in range(2):
        for i in range(4):
            h = features[view, i] / features[view, i].norm()
            scores = [float(h @ c) / 0.1 for c in prototypes]
            log_norm = math.log(sum(math.exp(score) for score in scores))
            total += float(weight[i]) * (log_norm - scores[int(labels[i]) - 3])
    assert float(found.total.detach()) == pytest.approx(1.5 + 0.35 * total / 8, rel=1e-5)
    assert float(found.terms["guide"]) == pytest.approx(total / 8, rel=1e-5)
