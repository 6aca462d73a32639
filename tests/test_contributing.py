"""What CONTRIBUTING says about adding things. The other examples are executed where their family is tested."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from tests.contributing_examples import BLOCK, TEXT, example

from justright.cli import main
from justright.features.table import FeatureTable
from justright.selection import SELECTORS

EXECUTED_IN = {
    "selector": "cli/test_added_selector.py",
    "option": "test_contributing.py",
    "loss": "test_contributing.py",
    "method": "discovery/test_methods.py",
    "data set": "data/catalog/test_data_set.py",
    "review action": "review/test_actions.py",
}


def test_every_example_is_executed_by_a_test(request):
    assert [thing for thing, _ in BLOCK.findall(TEXT)] == list(EXECUTED_IN)
    for thing, file in EXECUTED_IN.items():
        assert f'example("{thing}")' in (request.path.parent / file).read_text(encoding="utf-8"), file


def test_example_loss_agrees_with_loops_and_skips_unlabeled():
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


@pytest.fixture
def with_option():
    example("option")
    yield "random-large"
    del SELECTORS["random-large"]


def test_example_option_is_documented_recorded_and_validated(with_option, tmp_path):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), [4, 6, 5])
    FeatureTable.of(1 + rng.normal(size=(15, 8)), label=labels, dataset=["birds"] * 15).write(tmp_path / "birds")
    FeatureTable.of(1 + rng.normal(size=(9, 8))).write(tmp_path / "target")
    words = ["select", str(tmp_path / "birds"), "--target", str(tmp_path / "target"), "--selector", with_option]

    done = CliRunner().invoke(main, [*words, "--share", "1", "--min-images", "5", "--json"])
    printed = json.loads(done.stdout)
    assert [each["weight"] for each in printed["classes"]] == [0, 1, 1]
    assert printed["classes"][0]["reason"] == "left out: too few images"
    assert "min_images=5" in printed["request"]["selector"]

    assert "random-large: classes with fewer images are left out (1)." in " ".join(
        CliRunner().invoke(main, ["select", "--help"]).stdout.split()
    )
    refused = CliRunner().invoke(main, [*words, "--min-images", "0"])
    assert refused.exit_code == 2
    assert "0 is not a whole number of at least 1" in " ".join(refused.stderr.split())
