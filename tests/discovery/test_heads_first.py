from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.discovery.tiny import Stopped, config_of, data_of, final_bytes, learned, newest, stop_after

from justright.discovery import learner as learner_module
from justright.discovery import loop, simgcd
from justright.discovery.learner import FeatureViews, rows_for_heads
from justright.discovery.simgcd import SimGCDConfig
from justright.features.bank import open_views


@pytest.fixture
def stored(split, backbone, bank):
    data = data_of(split)
    return open_views(backbone, data.images, bank, transform="weak", views=3)


@pytest.fixture
def few_epochs(monkeypatch):
    """Heads learn alone for five epochs."""
    monkeypatch.setattr(simgcd, "MAX_EPOCHS", 5)


def test_views_are_the_features_of_what_is_stored(stored, backbone):
    rows = np.array([1, 4, 5, 30])
    views = FeatureViews(stored, rows, 3)
    (found,) = views.batch(np.array([30, 1, 5]), np.array([2, 0, 1]))
    for row, view, feature in zip((30, 1, 5), (2, 0, 1), found, strict=True):
        with torch.no_grad():
            expected = backbone.suffix(stored.batch(np.array([row]), np.array([view])))[0]
        torch.testing.assert_close(feature, expected, rtol=0, atol=1e-5)


def test_step_draws_different_views_reproducibly(stored):
    views = FeatureViews(stored, np.arange(10), 3)
    chosen = views.choose(2, 7, 50)
    assert chosen.shape == (2, 50)
    assert (chosen[0] != chosen[1]).all()
    assert set(chosen.ravel().tolist()) == {0, 1, 2}
    assert (views.choose(2, 7, 50) == chosen).all()
    assert not (views.choose(2, 8, 50) == chosen).all()


def test_heads_use_evenly_spaced_images(split, monkeypatch):
    data = data_of(split)
    labeled, unlabeled = rows_for_heads(data)
    assert labeled.tolist() == data.labeled.tolist()
    assert unlabeled.tolist() == data.unlabeled.tolist()
    monkeypatch.setattr(learner_module, "MAX_IMAGES_FOR_HEADS", 20)
    labeled, unlabeled = rows_for_heads(data)
    assert labeled.tolist() == data.labeled[::2].tolist()
    assert unlabeled.tolist() == data.unlabeled[::2].tolist()


@pytest.mark.parametrize("name", ["simgcd", "mugcd"])
def test_heads_train_before_the_network(name, split, backbone, bank, uninterrupted, tmp_path, few_epochs):
    learned(name, split, backbone, bank, tmp_path, heads_first=10)
    alone = load_file(newest(tmp_path / "heads"))
    assert not [each for each in alone if "backbone." in each], "the network does not change"
    assert any(each.startswith("network/heads.") for each in alone)
    folder, plain = uninterrupted(name)
    assert not (folder / "heads").exists()
    assert plain.config_.heads_first == 0
    assert final_bytes(tmp_path) != final_bytes(folder)
    assert any("backbone." in each for each in final_bytes(tmp_path)), "then it is tuned"


def test_heads_trained_alone_find_clusters(split, backbone, bank):
    """Without tuning afterwards, the best cosine of each image with a prototype is higher than at random."""
    still = {"learning_rate": 0.1, "backbone_share": 0.0, "n_epochs": 1, "n_steps": 1}
    before = learned("simgcd", split, backbone, bank, heads_first=0, **still)
    after = learned("simgcd", split, backbone, bank, heads_first=100, **still)
    best = [np.mean([each.assigner_.scores(each.features_).max(axis=1)]) for each in (before, after)]
    assert best[1] > best[0] + 0.1


@pytest.mark.parametrize("is_saved_often", [True, False])
@pytest.mark.parametrize(("name", "n_trainings"), [("simgcd", 2), ("mugcd", 3)])
def test_resumed_heads_training_is_byte_identical(
    name, n_trainings, is_saved_often, split, backbone, bank, uninterrupted, tmp_path, few_epochs, monkeypatch
):
    settings = {"heads_first": 10, "n_epochs": 3, "n_steps": 2}
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0 if is_saved_often else loop.CHECKPOINT_SECONDS)
    for n_before in range(n_trainings):
        with pytest.raises(Stopped):
            learned(name, split, backbone, bank, tmp_path, progress=stop_after(3, n_before), **settings)
    learned(name, split, backbone, bank, tmp_path, **settings)
    whole = uninterrupted(name, **settings).folder
    assert final_bytes(tmp_path) == final_bytes(whole)
    assert final_bytes(tmp_path / "heads") == final_bytes(whole / "heads")


def test_finished_heads_training_computes_no_features(split, backbone, bank, tmp_path, few_epochs, monkeypatch):
    settings = {"heads_first": 10}
    first = learned("simgcd", split, backbone, bank, tmp_path, **settings)
    monkeypatch.setattr(FeatureViews, "batch", None)
    again = learned("simgcd", split, backbone, bank, tmp_path, **settings)
    assert again.labels_.tolist() == first.labels_.tolist()


def test_fresh_views_have_features(split, backbone, bank, few_epochs):
    method = learned("simgcd", split, backbone, bank, heads_first=10, views="fresh")
    assert len(method.labels_) == len(split.unlabeled)


def test_heads_first_is_default_for_small_without_norm():
    assert SimGCDConfig().fitted(1000, 50, ends_in_norm=False).heads_first == 0, "not published"
    small = SimGCDConfig().small()
    assert small.fitted(1000, 50, ends_in_norm=True).heads_first == 0
    assert small.fitted(1000, 10, ends_in_norm=False).heads_first == 1000
    fitted = small.fitted(2000, 100, ends_in_norm=False)
    assert (fitted.heads_first, fitted.n_warmup) == (2500, 0)
    assert fitted.n_epochs * fitted.n_steps == 600
    assert fitted.fitted(2000, 100, ends_in_norm=False) == fitted


def test_heads_and_network_share_the_minutes():
    config = config_of("simgcd", minutes=8.0, heads_first=100)
    assert (config.for_heads_only().minutes, config.after_heads().minutes) == (2, 6)
