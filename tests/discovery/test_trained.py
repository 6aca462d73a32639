"""Weights in training: what holds for every trained method."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from tests.discovery.tiny import TRAINED, config_of, drawn_split, final_bytes, learned, records

from justright.data.splits import Split
from justright.discovery.loop import Training
from justright.discovery.methods import METHODS

NO_LEARNING = {"learning_rate": 0.0, "n_epochs": 1}
N_LABELED = 12


@pytest.mark.parametrize("name", TRAINED)
def test_weights_of_1_equal_no_weights(name, split, backbone, bank, uninterrupted, tmp_path):
    none = uninterrupted(name, n_epochs=1).folder
    for weighting in ("auto", "hard", "soft", "resample"):
        folder = tmp_path / weighting
        fit = {"weighting": weighting}
        learned(name, split, backbone, bank, folder, n_epochs=1, weight=np.ones(N_LABELED), fit=fit)
        assert final_bytes(folder) == final_bytes(none), weighting
        assert records(folder) == records(none)


@pytest.mark.parametrize("name", ["kmeans", *TRAINED])
def test_hard_weight_0_equals_absent_images(name, split, backbone, bank, tmp_path):
    # fresh views: the frozen part then computes the same batches, with the same rounding
    fresh = {} if name == "kmeans" else {"views": "fresh", "n_epochs": 1}
    weight = np.ones(N_LABELED)
    weight[split.labeled.labels == 1] = 0
    weight[0] = 0
    kept = Split(split.labeled.take(np.flatnonzero(weight)), split.unlabeled, split.classes)
    whole = learned(name, split, backbone, bank, tmp_path / "weighed", weight=weight, **fresh)
    fewer = learned(name, kept, backbone, bank, tmp_path / "taken", **fresh)
    if name != "kmeans":
        assert final_bytes(tmp_path / "weighed") == final_bytes(tmp_path / "taken")
        assert records(tmp_path / "weighed") == records(tmp_path / "taken")
    assert whole.labels_.tolist() == fewer.labels_.tolist()
    assert whole.categories_ == fewer.categories_
    assert whole.known_labels_ == fewer.known_labels_ == (0, 2)


@pytest.mark.parametrize("name", ["kmeans", *TRAINED])
@pytest.mark.parametrize("weighting", ["auto", "resample"])
def test_every_method_takes_every_weighting(name, weighting, split, backbone, bank):
    weight = np.array([0.0, 0.3, 1.7, 25.0] * 3)
    weight[split.labeled.labels == 1] = 0
    more = {} if name == "kmeans" else {"n_epochs": 1}
    # as many categories as classes with a weight: class 1 has no prototype
    method = learned(name, split, backbone, bank, weight=weight, n=2, fit={"weighting": weighting}, **more)
    assert method.known_labels_ == (0, 2)
    assert set(method.labels_.tolist()) <= {0, 1}
    assert len(method.labels_) == len(split.unlabeled)


@pytest.mark.parametrize("name", TRAINED)
def test_doubled_weights_double_the_supervised_terms(name, split, backbone, bank, tmp_path):
    learned(name, split, backbone, bank, tmp_path / "one", **NO_LEARNING)
    learned(name, split, backbone, bank, tmp_path / "two", weight=np.full(N_LABELED, 2.0), **NO_LEARNING)
    (one,), (two,) = records(tmp_path / "one"), records(tmp_path / "two")
    for term in {"sup_contrastive", "classification"} & one.keys():
        assert two[term] == pytest.approx(2 * one[term], rel=1e-6)
    without_labels = {"self_contrastive", "distillation", "mean_entropy", "mean_shift", "smoothed_contrastive"}
    for term in without_labels & one.keys():
        assert two[term] == one[term]


def test_soft_weights_scale_anchors_and_weight_0_removes_images(split, backbone, bank, monkeypatch):
    """Eq. 2 as loops over the projections of each step, without the image among anchors, positives and negatives."""
    weight = np.where(np.arange(N_LABELED) == 0, 0.0, np.where(np.arange(N_LABELED) % 2, 1.5, 0.5))
    steps, step = [], Training._step

    def recorded(self, epoch, rows):
        outputs = self._outputs(epoch, 0, rows[0])["projections"].detach().double().numpy()
        steps.append((rows[0], outputs, step(self, epoch, rows).terms["sup_contrastive"].item()))
        return step(self, epoch, rows)

    monkeypatch.setattr(Training, "_step", recorded)
    learned("gcd", split, backbone, bank, weight=weight, **NO_LEARNING)
    assert not any(0 in rows for rows, _, _ in steps)
    labels = split.labeled.labels
    for rows, projections, found in steps:
        z = projections / np.linalg.norm(projections, axis=-1, keepdims=True)
        anchors = [(view, place) for view in range(2) for place in range(len(rows)) if rows[place] < N_LABELED]
        total = 0.0
        for anchor in anchors:
            others = [other for other in anchors if other != anchor]
            logits = {other: z[anchor] @ z[other] / 0.07 for other in others}
            log_norm = np.log(sum(np.exp(value) for value in logits.values()))
            own = [logits[other] for other in others if labels[rows[other[1]]] == labels[rows[anchor[1]]]]
            total += weight[rows[anchor[1]]] * np.mean([log_norm - value for value in own])
        assert found == pytest.approx(total / len(anchors), rel=1e-4)


def test_soft_and_hard_zeros_are_the_same(split, backbone, bank, uninterrupted, tmp_path):
    weight = np.where(np.arange(N_LABELED) < 4, 0.0, 1.0)
    learned("gcd", split, backbone, bank, tmp_path / "hard", n_epochs=1, weight=weight)
    learned("gcd", split, backbone, bank, tmp_path / "soft", n_epochs=1, weight=weight, fit={"weighting": "soft"})
    assert final_bytes(tmp_path / "hard") == final_bytes(tmp_path / "soft")
    assert final_bytes(tmp_path / "hard") != final_bytes(uninterrupted("gcd", n_epochs=1).folder)


@pytest.mark.parametrize("name", TRAINED)
def test_held_out_images_are_never_drawn(name, split, backbone, bank, monkeypatch):
    drawn, step = set(), Training._step

    def recorded(self, epoch, rows):
        drawn.update(np.concatenate(rows).tolist())
        held_out.update(np.flatnonzero(self.data.is_held_out).tolist())
        return step(self, epoch, rows)

    held_out: set[int] = set()
    monkeypatch.setattr(Training, "_step", recorded)
    method = learned(name, split, backbone, bank, n_epochs=3, held_out_share=0.5)
    assert len(held_out) in (5, 6)
    assert not drawn & held_out
    assert len(drawn) > 25
    assert method.calibrated_on_ == "held-out labeled images"


@pytest.mark.parametrize("name", TRAINED)
def test_result_depends_on_the_seed_only(name, split, backbone, bank, uninterrupted, tmp_path):
    before = uninterrupted(name, n_epochs=1).folder
    for seed in (0, 1):
        np.random.seed(1234)  # the global generators must not matter
        torch.manual_seed(1234)
        learned(name, split, backbone, bank, tmp_path / str(seed), n_epochs=1, seed=seed)
    assert final_bytes(before) == final_bytes(tmp_path / "0") != final_bytes(tmp_path / "1")


@pytest.mark.parametrize("name", TRAINED)
def test_settings_round_trip_through_json(name):
    config = config_of(name, n_epochs=7)
    assert METHODS[name].config_class().with_settings(json.loads(json.dumps(asdict(config)))) == config
    assert config.with_settings({}) == config


@pytest.mark.parametrize("name", ["kmeans", *TRAINED])
def test_without_any_labeled_image_all_categories_are_discovered(name, split, backbone, bank):
    alone = replace(split, labeled=split.labeled.take([]))
    more = {} if name == "kmeans" else {"n_epochs": 1}
    method = learned(name, alone, backbone, bank, **more)
    assert {category.kind for category in method.categories_} == {"discovered"}
    assert len(method.categories_) == 5
    assert method.calibrated_on_ == "nothing: no labeled images were used"
    assert method.known_labels_ == ()
    assert len(method.labels_) == len(split.unlabeled)


@pytest.mark.parametrize("name", ["gcd", "simgcd"])
def test_class_with_one_image_is_known(name, backbone, bank):
    split = drawn_split()
    first_of_each = np.unique(split.labeled.labels, return_index=True)[1]
    method = learned(name, replace(split, labeled=split.labeled.take(first_of_each)), backbone, bank, n_epochs=1)
    assert method.known_labels_ == (0, 1, 2)
    assert np.isfinite(method.confidence_).all()
