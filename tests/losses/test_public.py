"""The public losses: their names, and the example in the documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import justright.losses
from justright.losses.reduction import expect_views
from justright.utils.errors import DataError

DOCS = Path(__file__).parents[2] / "docs" / "research" / "methods.md"


def section() -> str:
    return DOCS.read_text(encoding="utf-8").partition("## The losses")[2].partition("\n## ")[0]


def test_the_example_of_the_documents_runs():
    torch.manual_seed(0)
    (code,) = re.findall(r"```python\n(.*?)```", section(), re.S)
    found: dict = {}
    exec(code, found)
    assert found["total"].isfinite()
    assert found["projections"].grad.isfinite().all()
    assert found["terms"]["sup_contrastive"].item() == found["pulled"].item()


def test_without_weights_each_image_counts_once():
    generator = torch.Generator().manual_seed(0)
    rows, labels = torch.randn(2, 6, 4, generator=generator), torch.tensor([0, 0, 1, -1, 3, 3])
    for loss in (justright.losses.WeightedSupConLoss(), justright.losses.WeightedCrossEntropy()):
        assert loss(rows, labels) == loss(rows, labels, torch.ones(6))


def test_projections_without_views_are_rejected():
    with pytest.raises(DataError, match=r"shape \(6, 4\)\nExpected: views x images x dimensions"):
        expect_views(torch.zeros(6, 4))
    with pytest.raises(DataError, match=r"shape \(3, 6, 4\)\nExpected: 2 x images x dimensions"):
        expect_views(torch.zeros(3, 6, 4), 2)
    expect_views(torch.zeros(3, 6, 4))


def test_every_loss_is_public_and_documented():
    classes = [name for name in dir(justright.losses) if name.endswith(("Loss", "Entropy", "Objective", "Settings"))]
    assert len(classes) == 16
    for name in classes:
        assert getattr(justright.losses, name).__doc__
        assert f"`{name}`" in section(), name
