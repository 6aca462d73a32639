"""Features of a training, and a pool that guides: it shapes features, but its classes are no categories."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.discovery.tiny import (
    OTHER,
    TRAINED,
    Stopped,
    backbone_of_noise,
    config_of,
    data_of,
    drawn_images,
    drawn_split,
    final_bytes,
    guided_split,
    learned,
    records,
    stop_after,
)

from justright.discovery import learner as learner_module
from justright.discovery.learner import FEATURE_ROWS, FitInputs, features_of, in_chunks, trainable_copy
from justright.discovery.methods import METHODS
from justright.discovery.training_data import TrainingData
from justright.features.bank import open_views


@pytest.mark.parametrize("name", METHODS)
def test_no_image_gets_a_class_of_the_guide_pool(name, uninterrupted):
    method = uninterrupted(name, guided=True).method
    assert len(method.categories_) == method.n_categories_ == 5
    assert [category.name for category in method.categories_ if category.kind == "known"] == ["0", "1", "2"]
    found = method.predictions(guided_split().unlabeled)
    assert not set(found.table()["category"].to_pylist()) & set(map(str, OTHER))
    more = method.predict(drawn_images([20] * 6, "more", seed=9).without_labels(), neither=0.0)
    assert not set(more.table()["category"].to_pylist()) & set(map(str, OTHER)), "not even images of that class"


@pytest.mark.parametrize("name", METHODS)
def test_with_a_pool_alone_all_categories_are_new(name, backbone, bank):
    method = learned(name, guided_split(old=()), backbone, bank)
    assert [category.kind for category in method.categories_] == ["discovered"] * 5
    assert set(method.labels_.tolist()) <= set(range(5))


@pytest.mark.parametrize("name", TRAINED)
def test_pool_of_weight_0_equals_no_pool(name, backbone, bank, uninterrupted):
    split = guided_split()
    weight = (split.labeled.labels < 20).astype(float)
    method = learned(name, split, backbone, bank, weight=weight)
    alone = uninterrupted(name).method
    np.testing.assert_array_equal(method.labels_, alone.labels_)
    for key, tensor in method.backbone_.tuned_state().items():
        assert torch.equal(tensor, alone.backbone_.tuned_state()[key]), key


@pytest.mark.parametrize("name", TRAINED)
def test_guide_changes_features_but_not_steps(name, uninterrupted):
    guided, alone = uninterrupted(name, guided=True), uninterrupted(name)
    assert np.abs(guided.method.features_ - alone.method.features_).max() > 1e-4
    assert len(records(guided.folder)) == len(records(alone.folder))
    assert all("guide" in record for record in records(guided.folder))


@pytest.mark.parametrize("name", TRAINED)
def test_resumed_training_is_byte_identical(name, backbone, bank, uninterrupted, tmp_path, saved_often):
    with pytest.raises(Stopped):
        learned(name, guided_split(), backbone, bank, tmp_path / "cut", progress=stop_after(3))
    learned(name, guided_split(), backbone, bank, tmp_path / "cut")
    assert final_bytes(tmp_path / "cut") == final_bytes(uninterrupted(name, guided=True).folder)
    assert "network/guide.classifier.prototypes" in final_bytes(tmp_path / "cut")


def test_kmeans_ignores_the_guide_pool(backbone, bank):
    guided = learned("kmeans", guided_split(), backbone, bank)
    alone = learned("kmeans", drawn_split(), backbone, bank)
    np.testing.assert_array_equal(guided.labels_, alone.labels_)


def test_images_of_weight_0_are_never_drawn(backbone, bank):
    split = guided_split()
    method = METHODS["simgcd"](5, backbone, config_of("simgcd"), bank=bank)
    weight = np.where(split.labeled.labels == 21, 0.0, np.where(split.labeled.labels < 20, 1.0, 0.3))
    for weighting in ("soft", "resample"):
        data = TrainingData.of(split, weight, weighting)
        plain = open_views(backbone, data.images, bank, transform="plain", views=1, precision="float32")
        guide = method._guide(FitInputs(backbone, data, lambda plain=plain: plain), method.config)
        drawn = guide.batches.rows(0, n_steps=50)
        assert set(split.labeled.labels[drawn.ravel()].tolist()) == {20, 22}
        assert guide.classifier.prototypes.shape[0] == 2


def test_guide_share_0_equals_no_pool(backbone, bank, uninterrupted):
    guided = learned("simgcd", guided_split(), backbone, bank, guide_share=0.0)
    np.testing.assert_array_equal(guided.features_, uninterrupted("simgcd").method.features_)


def test_rival_classes_are_categories(backbone, bank):
    split = replace(guided_split(), guide_classes=())
    method = learned("simgcd", split, backbone, bank, n=8)
    assert [category.name for category in method.categories_[:6]] == ["0", "1", "2", "20", "21", "22"]


@pytest.mark.parametrize("size", [1, 3, 7, 8, None])
def test_chunks_keep_features_and_gradients(size, backbone):
    stored = backbone.prefix(torch.randn(7, 3, 16, 16, generator=torch.Generator().manual_seed(0)))
    parameters = list(backbone.tuned_parameters())
    expected = backbone.suffix(stored)
    found = in_chunks(backbone, stored, size)
    torch.testing.assert_close(found, expected)
    expected_gradients = torch.autograd.grad(expected.pow(3).sum(), parameters)
    gradients = torch.autograd.grad(found.pow(3).sum(), parameters)
    for one, other in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_micro_batch_limits_rows_at_once(backbone, monkeypatch):
    sizes, suffix = [], type(backbone).suffix
    monkeypatch.setattr(
        type(backbone), "suffix", lambda self, stored: sizes.append(len(stored[0])) or suffix(self, stored)
    )
    in_chunks(backbone, backbone.prefix(torch.randn(7, 3, 16, 16)), 3)
    assert sizes == [3, 3, 1]


def test_trainable_copy_shares_frozen_parameters_only(backbone):
    copied = trainable_copy(backbone)
    before = backbone.fingerprint
    for mine, other in zip(copied.model.parameters(), backbone.model.parameters(), strict=True):
        assert (mine is other) == (not other.requires_grad)
        assert mine.requires_grad == other.requires_grad
        if mine.requires_grad:
            mine.data += 1
    assert backbone.fingerprint == before
    assert copied.prefix_fingerprint == backbone.prefix_fingerprint
    images = torch.randn(2, 3, 16, 16)
    assert not torch.allclose(copied(images), backbone(images))


def test_features_use_the_test_transform_in_image_order(split, backbone, bank, monkeypatch):
    images = data_of(split).images
    plain = open_views(backbone, images, bank, transform="plain", views=1, precision="float32")
    batch = torch.stack([backbone.recipe.preprocess(np.array(images.image(row))) for row in range(len(images))])
    with torch.no_grad():
        expected = backbone(batch).numpy()
    for n_rows in (256, 7):
        monkeypatch.setattr(learner_module, "FEATURE_ROWS", n_rows)
        np.testing.assert_allclose(features_of(backbone, plain), expected, rtol=1e-3, atol=1e-4)


def test_features_are_computed_once_until_the_backbone_changes(split, backbone, bank):
    data, opened = data_of(split), []
    plain = open_views(backbone, data.images, bank, transform="plain", views=1, precision="float32")
    inputs = FitInputs(backbone, data, lambda: opened.append(plain) or plain)
    first = inputs.features()
    assert inputs.features() is first
    inputs.forget_features()
    assert inputs.features() is not first
    np.testing.assert_array_equal(inputs.features(), first)
    assert len(opened) == 1
    given = FitInputs(backbone, data, lambda: pytest.fail("views were opened"), (first[:3], first[3:]))
    np.testing.assert_array_equal(given.features(), first)


def test_features_do_not_depend_on_the_number_of_threads(bank):
    wide = backbone_of_noise(embed_dim=64, num_heads=4)
    data = data_of(drawn_split(per_class=64))
    plain = open_views(wide, data.images, bank, transform="plain", views=1, precision="float32")
    found, before = [], torch.get_num_threads()
    for n_threads in (1, 2):
        torch.set_num_threads(n_threads)
        rows = np.arange(0, len(data.images), 3)
        inputs = FitInputs(wide, data, lambda: plain)
        parts = inputs.features(), inputs.mean_feature(rows)
        found.append([part.tobytes() for part in parts])
        assert torch.get_num_threads() == n_threads
        np.testing.assert_allclose(parts[1], parts[0][rows].mean(axis=0), rtol=1e-4, atol=1e-6)
    torch.set_num_threads(before)
    assert len(data.images) > FEATURE_ROWS
    assert found[0] == found[1]
