from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.discovery.tiny import config_of, data_of, learned, records

from justright.clustering import SemiSupKMeans
from justright.discovery import base
from justright.discovery.gcd import GCDLearner
from justright.discovery.learner import features_of
from justright.discovery.loop import Training
from justright.discovery.xcon import XCon, XConLearner
from justright.features.bank import open_views
from justright.losses import ContrastiveObjective
from justright.utils.errors import DegenerateError


@pytest.fixture
def batches_of(monkeypatch):
    """A function that returns the batches of a training that does not run."""

    def made(*arguments, **options):
        found = []
        monkeypatch.setattr(Training, "run", lambda self, *_: found.append(self.learner))
        learned("xcon", *arguments, **options)
        return found[0].batches

    return made


def test_loss_is_global_plus_a_tenth_of_the_mean_expert_loss(split, backbone):
    config = config_of("xcon", n_experts=3)
    assert config.expert_scale == 0.1
    data = data_of(split)
    learner = XConLearner(backbone, config, [data.batches(4, 0)] * 4, torch.Generator().manual_seed(0))
    drawn = torch.Generator().manual_seed(1)
    outputs = [{"projections": torch.randn(2, n, 6, generator=drawn)} for n in (6, 4, 4, 4)]
    labels = [torch.tensor([0, 0, 1, -1, -1, 2][:n]) for n in (6, 4, 4, 4)]
    weight = [torch.rand(n, generator=drawn) for n in (6, 4, 4, 4)]
    losses = ContrastiveObjective(config)
    each = [
        losses(output["projections"], label, w).total.item()
        for output, label, w in zip(outputs, labels, weight, strict=True)
    ]
    found = learner.objective(outputs, labels, weight, epoch=0)
    assert found.total.item() == pytest.approx(each[0] + 0.1 * (each[1] + each[2] + each[3]) / 3)
    assert found.terms["experts"].item() == pytest.approx(sum(each[1:]) / 3)


def test_every_expert_has_its_own_head(split, backbone):
    data = data_of(split)
    learner = XConLearner(backbone, config_of("xcon"), [data.batches(4, 0)] * 3, torch.Generator().manual_seed(0))
    stored = {"weak": backbone.prefix(torch.randn(8, 3, 16, 16))}
    heads = [learner.outputs(stored, part)["projections"] for part in range(3)]
    assert not torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[1], heads[2])
    alone = GCDLearner(backbone, config_of("gcd"), learner.batches[0], torch.Generator().manual_seed(0))
    torch.testing.assert_close(alone.outputs(stored, 0)["projections"], heads[0])


def test_experts_get_clusters_of_frozen_features(split, backbone, bank, batches_of):
    everything, *experts = batches_of(split, backbone, bank, n_experts=3, batch_size=12)
    data = data_of(split)
    views = open_views(backbone, data.images, bank, transform="plain", views=1, precision="float32")
    features = features_of(backbone, views)
    cluster = SemiSupKMeans(3, n_init=10, seed=0).fit(features).labels_
    for number, part in enumerate(experts):
        rows = np.flatnonzero(cluster == number)
        assert part.labeled.tolist() == rows[rows < data.n_labeled].tolist()
        assert part.unlabeled.tolist() == rows[rows >= data.n_labeled].tolist()
        assert part.batch_size == 4
    assert everything.batch_size == 12
    assert len(everything) == sum(len(part) for part in experts) == len(data.images)


def test_epoch_length_follows_the_largest_part(split, backbone, bank, monkeypatch):
    steps = []
    monkeypatch.setattr(base.Training, "run", lambda self, *_: steps.append((self.n_steps, self.learner.batches)))
    learned("xcon", split, backbone, bank, batch_size=8, n_experts=4)
    ((n_steps, batches),) = steps
    assert n_steps == max(part.n_steps for part in batches)
    assert n_steps > batches[0].n_steps  # the largest part outnumbers its share of the batch


def test_expert_without_labels_trains(split, backbone, bank, tmp_path, monkeypatch):
    n_labeled = len(split.labeled)

    def apart(self, features):  # all labeled images with one expert
        return np.where(np.arange(len(features)) < n_labeled, 0, np.arange(len(features)) % 2)

    monkeypatch.setattr(XCon, "_experts", apart)
    for number, weight in enumerate((None, np.linspace(0.1, 2, n_labeled))):
        fit = {} if weight is None else {"weighting": "resample"}
        folder = tmp_path / str(number)
        learned("xcon", split, backbone, bank, folder, weight=weight, fit=fit)
        assert all(np.isfinite(list(record.values())).all() for record in records(folder))


def test_more_experts_than_images_are_rejected(split, backbone, bank):
    with pytest.raises(DegenerateError, match="41 clusters for 0 labeled classes and 40 unlabeled images"):
        learned("xcon", split, backbone, bank, n_experts=41)
