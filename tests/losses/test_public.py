"""The public losses: their names, and the example in the documents."""

from __future__ import annotations

import re
from pathlib import Path

import torch

import justright.losses

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


def test_every_loss_is_public_and_documented():
    classes = [name for name in dir(justright.losses) if name.endswith(("Loss", "Entropy", "Objective", "Settings"))]
    assert len(classes) == 16
    for name in classes:
        assert getattr(justright.losses, name).__doc__
        assert f"`{name}`" in section(), name
