from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.discovery.tiny import config_of, data_of, drawn_split, final_bytes, learned

from justright.data.splits import Split
from justright.data.transforms import ImageRecipe
from justright.discovery import simgcd
from justright.discovery.loop import teacher_temperature
from justright.discovery.simgcd import Heads, SimGCD, SimGCDLearner
from justright.features.backbone import Backbone
from justright.features.guarded_timm import timm
from justright.losses import SimGCDObjective, SimGCDSettings


@pytest.fixture
def learner(split, backbone):
    batches = data_of(split).batches(8, seed=0)
    config = config_of("simgcd", n_epochs=40, entropy_scale=3.0).fitted(100, 5)
    heads = Heads(backbone.dim, 5, config, torch.Generator().manual_seed(0))
    return SimGCDLearner(backbone, config, batches, heads)


def test_teacher_logits_are_the_networks_own_at_the_epochs_temperature(learner):
    drawn = torch.Generator().manual_seed(1)
    outputs = {"projections": torch.randn(2, 4, 6, generator=drawn), "logits": torch.rand(2, 4, 5, generator=drawn)}
    labels, weight = torch.tensor([0, 1, -1, 4]), torch.tensor([1.0, 0.5, 1.0, 2.0])
    objective = SimGCDObjective(SimGCDSettings(entropy_scale=3.0))
    for epoch in (0, 2, 39):
        found = learner.objective([outputs], [labels], [weight], epoch)
        temperature = teacher_temperature(epoch, 0.07, 0.04, learner.config.n_warmup)
        expected = objective(*outputs.values(), outputs["logits"], labels, weight, temperature_teacher=temperature)
        assert found.total == expected.total
    assert learner.config.n_warmup == 8  # a fifth of a short training


def test_outputs_have_projections_and_logits_of_two_weak_views(learner, backbone):
    assert learner.streams == {"weak": 2}
    outputs = learner.outputs({"weak": backbone.prefix(torch.randn(6, 3, 16, 16))}, part=0)
    assert outputs["projections"].shape == (2, 3, 8)
    assert outputs["logits"].shape == (2, 3, 5)
    assert outputs["logits"].abs().max() <= 1


def test_prototypes_assign_the_images(uninterrupted):
    folder, method = uninterrupted("simgcd")
    prototypes = np.frombuffer(final_bytes(folder)["network/heads.classifier.prototypes"], np.float32).reshape(5, -1)
    unit = [row / np.linalg.norm(row) for row in (*prototypes, *method.features_)]
    cosine = np.stack(unit[5:]) @ np.stack(unit[:5]).T
    assert method.labels_.tolist() == cosine.argmax(axis=1).tolist()
    assert (method.confidence_ > 0.2 - 1e-6).all()
    assert (method.confidence_ <= 1).all()


def centered_cosines(method, folder):
    prototypes = np.frombuffer(final_bytes(folder)["network/heads.classifier.prototypes"], np.float32).reshape(5, -1)
    less = method.features_ - method.assigner_.center
    return [[h @ c / np.linalg.norm(h) / np.linalg.norm(c) for c in prototypes] for h in less]


def test_center_is_the_mean_frozen_feature_of_seen_images(split, backbone, bank, tmp_path):
    weight = np.where(split.labeled.labels == 0, 0.0, 1.0)
    method = learned("simgcd", split, backbone, bank, tmp_path, weight=weight, center="always")
    kept = split.labeled.take(np.flatnonzero(weight))
    frozen = [
        learned("kmeans", Split(split.labeled, seen, split.classes), backbone, bank).features_
        for seen in (kept, split.unlabeled)
    ]
    expected = np.concatenate(frozen).mean(axis=0)
    np.testing.assert_allclose(method.assigner_.center, expected, atol=1e-5)
    assert method.labels_.tolist() == np.argmax(centered_cosines(method, tmp_path), axis=1).tolist()


def test_center_is_saved(split, backbone, uninterrupted, tmp_path):
    method = uninterrupted("simgcd", center="always").method
    method.save(tmp_path / "model")
    loaded = SimGCD.load(tmp_path / "model", backbone)
    assert np.array_equal(loaded.assigner_.center, method.assigner_.center)
    assert loaded.predict(split.unlabeled, neither=0.0).cluster.tolist() == method.labels_.tolist()


def test_auto_centers_networks_without_norm_only(split, backbone, bank, tmp_path, monkeypatch):
    for name in ("MIN_HEAD_STEPS", "HEAD_STEPS_PER_CATEGORY"):  # before the network, as for every conv net
        monkeypatch.setattr(simgcd, name, 1)
    monkeypatch.setattr(simgcd, "MAX_EPOCHS", 5)
    torch.manual_seed(0)
    conv_net = Backbone(timm.create_model("test_resnet", num_classes=0), "conv", ImageRecipe(32, 32))
    assert learned("simgcd", split, backbone, bank, n_epochs=1).assigner_.center is None
    method = learned("simgcd", split, conv_net, bank, tmp_path, n_epochs=1)
    assert method.assigner_.center.min() >= 0  # a mean of pooled activations
    assert method.labels_.tolist() == np.argmax(centered_cosines(method, tmp_path), axis=1).tolist()
    assert learned("simgcd", split, conv_net, bank, n_epochs=1, center="never").assigner_.center is None


@pytest.mark.parametrize("is_centered", [True, False])
def test_uncentered_features_leave_new_prototypes_unused(is_centered):
    """Why there is a center: eight groups of features far from the origin, four of them labeled."""
    drawn = torch.Generator().manual_seed(0)
    groups = torch.randn(8, 32, generator=drawn)
    number = torch.arange(8).repeat_interleave(16)
    labels = torch.where((number < 4) & (torch.arange(128) % 2 == 0), number, -1)
    views = groups[number] + 0.3 * torch.randn(2, 128, 32, generator=drawn) + 8.0
    center = views.mean(dim=(0, 1)).numpy() if is_centered else None
    heads = Heads(32, 8, config_of("simgcd"), torch.Generator().manual_seed(0), center)
    optimizer = torch.optim.SGD(heads.parameters(), lr=0.1, momentum=0.9)
    objective = SimGCDObjective()
    for step in range(60):
        projections, logits = heads(views).values()
        temperature = teacher_temperature(step, 0.07, 0.04, 9)
        loss = objective(projections, logits, logits, labels, torch.ones(128), temperature_teacher=temperature).total
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    n_used = len(logits[0].argmax(dim=1).unique())
    assert n_used == 8 if is_centered else n_used <= 5


def test_initial_heads_ignore_the_global_generator(split, backbone, bank, uninterrupted, tmp_path):
    before = uninterrupted("simgcd", n_epochs=1).folder
    torch.manual_seed(1234)
    learned("simgcd", split, backbone, bank, tmp_path, n_epochs=1)
    assert final_bytes(tmp_path) == final_bytes(before)


@pytest.mark.parametrize("is_uneven", [False, True])
def test_run_notes_uneven_classes(is_uneven, backbone, bank):
    split = drawn_split(per_class=24)
    labels = split.labeled.labels
    first = np.flatnonzero(labels == labels[0])
    rows = np.concatenate([first, *(np.flatnonzero(labels == label)[:1] for label in set(labels[labels != labels[0]]))])
    given = replace(split, labeled=split.labeled.take(np.sort(rows))) if is_uneven else split
    found = learned("simgcd", given, backbone, bank, n_epochs=1, n_steps=1, entropy_scale_uneven=0.5)
    notes = [note for note in found.notes_ if "entropy_scale is 0.5, not 2.0" in note]
    assert (found.config_.entropy_scale, len(notes)) == ((0.5, 1) if is_uneven else (2.0, 0))
