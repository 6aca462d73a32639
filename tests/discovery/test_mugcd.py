from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.discovery.tiny import config_of, data_of, learned, newest, records

from justright.data.transforms import Strong, describe
from justright.discovery.gcd import GCDConfig
from justright.discovery.loop import Training, teacher_momentum
from justright.discovery.mugcd import MuGCDConfig, MuGCDLearner
from justright.discovery.simgcd import Heads
from justright.features.bank import ViewBank


@pytest.fixture
def learner(split, backbone):
    batches = data_of(split).batches(8, seed=0)
    config = config_of("mugcd", n_epochs=10)
    heads = Heads(backbone.dim, 5, config, torch.Generator().manual_seed(0))
    return MuGCDLearner(copy.deepcopy(backbone), config, batches, heads)


def test_teacher_starts_as_student_and_follows_the_schedule(learner):
    stored = {
        "strong": learner.backbone.prefix(torch.randn(6, 3, 16, 16)),
        "weak": learner.backbone.prefix(torch.randn(3, 3, 16, 16)),
    }
    student = learner.student(*stored["weak"])
    assert torch.equal(learner.outputs(stored, 0)["teacher_logits"][0], student["logits"])
    for epoch in (0, 3, 9):
        before = {name: tensor.clone() for name, tensor in learner.changing().items()}
        with torch.no_grad():
            for parameter in learner.student.parameters():
                if parameter.requires_grad:
                    parameter.add_(0.1)
        learner.after_step(epoch)
        momentum = teacher_momentum(epoch, 10, 0.7, 0.999)
        for name, now in learner.changing().items():
            if name.startswith("teacher."):
                expected = momentum * before[name] + (1 - momentum) * (before[name.removeprefix("teacher.")] + 0.1)
                torch.testing.assert_close(now, expected)


def test_teacher_has_no_gradient_and_shares_frozen_parameters(learner):
    assert not any(p.requires_grad for p in learner.teacher.parameters())
    of_student, of_teacher = learner.backbone.model, learner.teacher.backbone.model
    assert of_teacher.cls_token is of_student.cls_token
    assert of_teacher.blocks[1].mlp.fc1.weight is not of_student.blocks[1].mlp.fc1.weight
    assert {name for name in learner.changing() if name.startswith("teacher.")} == {
        f"teacher.{name}" for name in learner.changing() if not name.startswith("teacher.")
    }


def test_student_gets_two_strong_views_and_teacher_one_weak_view(split, backbone, bank, monkeypatch):
    seen, outputs, batch = [], MuGCDLearner.outputs, ViewBank.batch
    stored_by = {}

    def noted_batch(self, rows, views):
        stored = batch(self, rows, views)
        stored_by[id(stored[0])] = (type(self.transform).__name__, rows)
        kept.append(stored)
        return stored

    def noted(self, stored, part):
        (strong, rows), (weak, rows_of_weak) = (stored_by[id(stored[name][0])] for name in ("strong", "weak"))
        seen.append((strong, weak))
        assert np.array_equal(rows, np.tile(rows_of_weak, 2))  # the same images, and two views of each
        found = outputs(self, stored, part)
        expected = self.teacher(*stored["weak"])["logits"]
        assert torch.equal(found["teacher_logits"][0], expected)
        assert found["logits"].shape == (2, 8, 5)
        return found

    kept: list = []
    monkeypatch.setattr(ViewBank, "batch", noted_batch)
    monkeypatch.setattr(MuGCDLearner, "outputs", noted)
    learned("mugcd", split, backbone, bank, n_epochs=1)
    assert set(seen) == {("Strong", "Weak")}


@pytest.mark.parametrize("who", ["teacher", "student"])
def test_infer_with_selects_teacher_or_student(who, split, backbone, bank, tmp_path):
    method = learned("mugcd", split, backbone, bank, tmp_path, infer_with=who)
    saved = load_file(newest(tmp_path))
    of = "network/teacher." if who == "teacher" else "network/"
    for name, tensor in method.backbone_.tuned_state().items():
        assert torch.equal(tensor, saved[f"{of}backbone.model.{name}"])
    prototypes = saved[f"{of}heads.classifier.prototypes"]
    expected = (prototypes / prototypes.norm(dim=1, keepdim=True)).numpy()
    np.testing.assert_allclose(method.assigner_.vectors, expected, rtol=1e-5)
    other = "network/" if who == "teacher" else "network/teacher."
    assert not torch.equal(prototypes, saved[f"{other}heads.classifier.prototypes"])


def test_stage2_starts_from_the_result_of_stage1(split, backbone, bank, tmp_path, monkeypatch):
    started, run = [], Training.run

    def noted(self, *arguments):
        started.append(self.learner.backbone.tuned_state())
        run(self, *arguments)

    monkeypatch.setattr(Training, "run", noted)
    learned("mugcd", split, backbone, bank, tmp_path)
    first, second = started
    assert all(torch.equal(tensor, backbone.tuned_state()[name]) for name, tensor in first.items())
    saved = load_file(newest(tmp_path / "stage1"))
    assert all(torch.equal(tensor, saved[f"network/backbone.model.{name}"]) for name, tensor in second.items())
    assert "distillation" not in records(tmp_path / "stage1")[0]
    assert "distillation" in records(tmp_path)[0]


def test_every_step_moves_the_teacher_once(split, backbone, bank, monkeypatch):
    moved = []
    monkeypatch.setattr(MuGCDLearner, "after_step", lambda self, epoch: moved.append(epoch))
    learned("mugcd", split, backbone, bank, n_epochs=3)
    assert moved == [epoch for epoch in range(3) for _ in range(5)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, Strong(jitter=0.0, grayscale=0.0, blur=0.0)),
        ({"strong_area": 0.3, "strong_color": 1.0}, Strong(scale=(0.3, 1.0))),
        ({"strong_color": 0.5}, Strong(jitter=0.4, grayscale=0.1, blur=0.25)),
    ],
)
def test_strong_view_settings_are_used(settings, expected, split, backbone, tmp_path):
    learned("mugcd", split, backbone, tmp_path, n_epochs=1, **settings)
    drawn = [json.loads(path.read_text())["key"]["transform"] for path in tmp_path.glob("*/key.json")]
    (found,) = [transform for transform in drawn if transform["kind"] == "Strong"]
    assert found == json.loads(json.dumps(describe(expected)))


def test_common_settings_reach_stage1_unless_it_sets_them():
    config = MuGCDConfig().with_settings({"n_epochs": 15, "learning_rate": 0.5, "n_warmup": 8})
    assert (config.stage1.n_epochs, config.stage1.learning_rate) == (15, 0.5)
    config = MuGCDConfig().with_settings({"n_epochs": 15, "learning_rate": 0.5, "stage1": {"n_epochs": 4}})
    assert (config.n_epochs, config.stage1.n_epochs, config.stage1.learning_rate) == (15, 4, 0.5)
    config = MuGCDConfig().with_settings({"n_epochs": 15, "stage1": GCDConfig(n_epochs=2)})
    assert config.stage1 == GCDConfig(n_epochs=2)
    assert config.stage1.decay_vectors, "an unset value is the default of GCD"


def test_stage1_uses_its_own_view_settings(split, backbone, tmp_path, monkeypatch):
    trained_on, run = [], Training.run

    def noted(self, *arguments):
        trained_on.append({stream: (type(views).__name__, views) for stream, views in self.views.items()})
        run(self, *arguments)

    monkeypatch.setattr(Training, "run", noted)
    first = {"views": 3, "bank_precision": "float32"}
    learned("mugcd", split, backbone, tmp_path / "bank", tmp_path / "run", n_epochs=1, views="fresh", stage1=first)
    (kind, weak), second = trained_on[0]["weak"], {name: kind for name, (kind, _) in trained_on[1].items()}
    assert kind == "ViewBank"
    assert (weak.n_views, weak.layout["n"].base) == (3, np.float32)
    assert second == {"strong": "FreshViews", "weak": "FreshViews"}
