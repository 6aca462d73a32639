from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.discovery.tiny import (
    N_CATEGORIES,
    Stopped,
    config_of,
    data_of,
    final_bytes,
    learned,
    newest,
    stop_after,
)

from justright.clustering.hierarchy import hierarchy
from justright.discovery import loop
from justright.discovery.learner import FitInputs, features_of
from justright.discovery.selex import TARGETS, SelExConfig, SelExLearner
from justright.features.bank import open_views
from justright.losses import SelExObjective
from justright.losses.self_expertise import apart_by_clusters, apart_by_reach
from justright.utils.seeding import generator


@pytest.fixture
def learner_of(split, backbone, bank):
    def made(**more):
        data = data_of(split)
        plain = open_views(backbone, data.images, bank, transform="plain", views=1, precision="float32")
        first = torch.Generator().manual_seed(0)
        inputs = FitInputs(backbone, data, lambda: plain)
        return SelExLearner(inputs, config_of("selex", **more), N_CATEGORIES, 0, first)

    return made


def test_defaults_match_the_public_scripts_without_their_bug():
    config = SelExConfig()
    assert (config.smoothing, config.temperature_unsup, config.temperature_sup) == (1.0, 1.0, 0.07)
    assert (config.learning_rate, config.supervised_share, config.n_out) == (0.1, 0.35, 65536)
    assert (config.target, config.order) == ("pseudo_label", "restored")


def test_paper_scale_matches_the_public_code():
    config = SelExConfig().exact()
    assert (config.target, config.order, config.views) == ("radius_raw", "official", "fresh")
    assert config.with_settings({"order": "restored"}).order == "restored"


@pytest.mark.parametrize("order", ["restored", "official"])
def test_hierarchy_is_computed_at_the_start_of_an_epoch(order, learner_of, split, backbone):
    learner, data = learner_of(order=order), data_of(split)
    learner.begin_epoch(2, {})
    features = features_of(backbone, learner.plain)
    levels = learner.levels.clone()
    assert levels.shape == (2, len(data.images))  # of three known classes and two others
    seed = int(generator(0, "hierarchy", 2).integers(2**31))
    expected = hierarchy(features, data.labels, 5, seed, order=order)
    np.testing.assert_array_equal(levels.numpy(), expected.labels)
    np.testing.assert_allclose(learner.reach.numpy(), expected.reach, rtol=1e-6)
    learner.begin_epoch(2, {})
    assert torch.equal(learner.levels, levels)


@pytest.mark.parametrize("target", TARGETS)
def test_loss_uses_the_levels_of_the_batch(target, learner_of):
    learner = learner_of(target=target)
    learner.begin_epoch(0, {})
    rows = np.array([1, 30, 5, 17, 2, 22])
    learner.batch_rows = [rows]
    labels, weight = torch.from_numpy(learner.labels[rows]), torch.tensor([1.0, 1.0, 0.5, 1.0, 2.0, 1.0])
    z, h = torch.randn(2, 6, 8), 3 * torch.randn(2, 6, 12)
    found = learner.objective([{"projections": z, "features": h}], [labels], [weight], epoch=0).total
    levels, reach = learner.levels[:, rows], learner.reach[:, rows]
    apart = {
        "pseudo_label": apart_by_clusters(levels),
        "radius_raw": apart_by_reach(h, reach),
    }[target]
    assert found == SelExObjective(learner.config)(z, levels, apart, labels, weight).total


@pytest.mark.parametrize("target", TARGETS)
def test_radius_targets_output_features(target, learner_of, backbone):
    outputs = learner_of(target=target).outputs({"weak": backbone.prefix(torch.randn(6, 3, 16, 16))}, part=0)
    assert outputs["projections"].shape == (2, 3, 8)
    assert ("features" in outputs) == (target != "pseudo_label")


@pytest.mark.parametrize("more", [{}, {"target": "radius_raw", "order": "official"}])
def test_hierarchy_is_constant_within_an_epoch_and_restored_on_resume(
    more, split, backbone, bank, tmp_path, monkeypatch
):
    epochs, begin = [], SelExLearner.begin_epoch

    def recorded(self, epoch, views):
        epochs.append(epoch)
        begin(self, epoch, views)

    monkeypatch.setattr(SelExLearner, "begin_epoch", recorded)
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)  # after each step
    learned("selex", split, backbone, bank, tmp_path / "whole", **more)
    with pytest.raises(Stopped):
        learned("selex", split, backbone, bank, tmp_path / "cut", progress=stop_after(7), **more)  # in the second epoch
    assert newest(tmp_path / "cut").name == "step-000000007.safetensors"
    epochs.clear()
    learned("selex", split, backbone, bank, tmp_path / "cut", **more)
    assert epochs == []
    assert final_bytes(tmp_path / "cut") == final_bytes(tmp_path / "whole")
    assert {"network/levels", "network/reach"} <= final_bytes(tmp_path / "cut").keys()


def test_settings_change_the_trained_network(split, backbone, bank, tmp_path):
    chosen = [{"target": target} for target in TARGETS] + [{"order": "official"}]
    weights = []
    for number, more in enumerate(chosen):
        learned("selex", split, backbone, bank, tmp_path / str(number), **more)
        weights.append(final_bytes(tmp_path / str(number))["network/projector.layers.0.weight"])
    assert len(set(weights)) == len(chosen)
