from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.discovery.tiny import (
    Stopped,
    config_of,
    data_of,
    final_bytes,
    learned,
    newest,
    stop_after,
)

from justright.data import merge_pool
from justright.discovery.cms import MEMORY_STEP, CMSConfig, CMSLearner, ShiftedClusters
from justright.features.bank import open_views
from justright.losses import CMSObjective
from justright.runs.problem import OWN, Problem
from justright.runs.run import Run
from justright.runs.spec import RunSpec


def learner_of(split, backbone, **more):
    batches = data_of(split).batches(8, seed=0)
    return CMSLearner(backbone, config_of("cms", **more), batches, torch.Generator().manual_seed(0))


def test_defaults_match_the_public_scripts():
    config = CMSConfig()
    assert (config.n_neighbors, config.shift, config.temperature_unsup, config.n_out) == (8, 0.5, 0.25, 768)
    assert (config.learning_rate, config.floor_share, config.supervised_share) == (0.05, 5e-3, 0.35)


def test_paper_scale_clusters_projections():
    assert CMSConfig().cluster_by == "features"
    assert CMSConfig().exact().cluster_by == "projections"


@pytest.mark.parametrize(("n_out", "dim"), [(None, 8), (20, 20)])
def test_memory_holds_unit_projections_of_two_views(n_out, dim, split, backbone, bank):
    data, learner = data_of(split), learner_of(split, backbone, n_out=n_out)
    views = open_views(backbone, data.images, bank, transform="weak", views=3, precision="float32")
    learner.begin_epoch(4, {"weak": views})
    n = len(data.images)
    assert learner.memory.shape == (2 * n, dim)
    chosen = views.choose(4, MEMORY_STEP, n, 2)
    for view in range(2):
        row = n + 7 if view else 7
        with torch.no_grad():
            projection = learner.projector(backbone.suffix(views.batch(np.array([7]), chosen[view, 7:8])))[0]
        torch.testing.assert_close(learner.memory[row], projection / projection.norm())
    before = learner.memory.clone()
    learner.begin_epoch(4, {"weak": views})
    assert torch.equal(learner.memory, before)
    learner.begin_epoch(5, {"weak": views})
    assert not torch.equal(learner.memory, before)


def test_loss_uses_the_memory(split, backbone):
    learner = learner_of(split, backbone)
    learner.memory.copy_(torch.nn.functional.normalize(torch.randn(learner.memory.shape), dim=1))
    z, labels = torch.randn(2, 6, 8), torch.tensor([0, 1, 0, -1, -1, 1])
    parts = learner.objective([{"projections": z}], [labels], [torch.ones(6)], epoch=3)
    expected = CMSObjective(config_of("cms"))(z, learner.memory, labels, torch.ones(6))
    assert parts.total == expected.total


def test_memory_is_constant_within_an_epoch_and_restored_on_resume(
    split, backbone, bank, uninterrupted, tmp_path, saved_often, monkeypatch
):
    epochs, begin = [], CMSLearner.begin_epoch

    def recorded(self, epoch, views):
        epochs.append(epoch)
        begin(self, epoch, views)

    monkeypatch.setattr(CMSLearner, "begin_epoch", recorded)
    with pytest.raises(Stopped):
        learned("cms", split, backbone, bank, tmp_path / "cut", progress=stop_after(7))  # in the second epoch
    assert newest(tmp_path / "cut").name == "step-000000007.safetensors"
    epochs.clear()
    learned("cms", split, backbone, bank, tmp_path / "cut")
    assert epochs == []
    assert final_bytes(tmp_path / "cut") == final_bytes(uninterrupted("cms").folder)
    assert "network/memory" in final_bytes(tmp_path / "cut")


def test_run_notes_k_chosen_by_the_method(split, backbone, tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    problem = Problem(merge_pool([split.labeled.named(OWN)]), split.unlabeled)
    settings = {"categories": "labeled", "n_epochs": 1, "batch_size": 8, "views": 2}
    spec = RunSpec(method="cms", scale="small", settings=settings, n_target=30)
    run = Run(problem, spec, tmp_path / "run", backbone).all()
    assert f"cms found {run.about['n_categories']} categories by itself, not 30" in run.about["notes"]
    assert run.about["n_categories"] < 30


def test_k_can_be_chosen_by_labeled_images(split, backbone, bank):
    method = learned("cms", split, backbone, bank, n=30, categories="labeled")
    assert 4 <= method.n_categories_ < 30
    assert len(method.categories_) == method.n_categories_ == len(method.assigner_.vectors)
    assert set(method.labels_.tolist()) <= set(range(method.n_categories_))


@pytest.mark.parametrize("by", ["features", "projections"])
def test_new_images_join_the_nearest_feature_centroid(by, split, backbone, bank):
    method = learned("cms", split, backbone, bank, cluster_by=by)
    cluster, _, _ = method.assigner_.assign(method.features_)
    assert (method.confidence_[cluster != method.labels_] == 0).all()
    assert (cluster == method.labels_).mean() > 0.6
    assert set(method.labels_.tolist()) <= set(range(5))


@pytest.mark.parametrize(("by", "dim"), [("features", 12), ("projections", 8)])
def test_features_or_projections_are_clustered(by, dim, split, backbone, bank, monkeypatch):
    shapes, best = [], ShiftedClusters.best

    def recorded(self, x, *more):
        shapes.append(x.shape)
        return best(self, x, *more)

    monkeypatch.setattr(ShiftedClusters, "best", recorded)
    learned("cms", split, backbone, bank, n_epochs=1, cluster_by=by)
    assert shapes == [(40, dim)]
