from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.discovery.tiny import config_of, data_of, learned

from justright.discovery.gcd import GCDConfig, GCDLearner
from justright.discovery.mugcd import MuGCDConfig
from justright.losses import SelfContrastiveLoss, WeightedSupConLoss


def learner_of(split, backbone, **more):
    batches = data_of(split).batches(8, seed=0)
    return GCDLearner(backbone, config_of("gcd", **more), batches, torch.Generator().manual_seed(0))


@pytest.mark.parametrize("share", [0.0, 0.35, 1.0])
def test_loss_is_the_weighted_sum_of_both_contrastive_losses(share, split, backbone):
    learner = learner_of(split, backbone, supervised_share=share, temperature_unsup=0.5, temperature_sup=0.1)
    z = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0))
    labels, weight = torch.tensor([0, 1, 0, -1, -1, 1]), torch.tensor([1.0, 0.0, 2.0, 1.0, 1.0, 0.5])
    found = learner.objective([{"projections": z}], [labels], [weight], epoch=3).total.item()
    unsup, sup = SelfContrastiveLoss(0.5)(z).item(), WeightedSupConLoss(0.1)(z, labels, weight).item()
    assert found == pytest.approx((1 - share) * unsup + share * sup, rel=1e-5)


@pytest.mark.parametrize(("n_out", "dim"), [(None, 8), (20, 20)])
def test_losses_use_projections(n_out, dim, split, backbone):
    learner = learner_of(split, backbone, n_out=n_out)
    outputs = learner.outputs({"weak": backbone.prefix(torch.randn(6, 3, 16, 16))}, part=0)
    assert outputs["projections"].shape == (2, 3, dim)


def test_views_are_ordered_view_by_view(split, backbone):
    images = torch.randn(3, 3, 16, 16)
    outputs = learner_of(split, backbone).outputs({"weak": backbone.prefix(torch.cat([images, images]))}, part=0)
    torch.testing.assert_close(outputs["projections"][0], outputs["projections"][1])


def test_labels_are_clusters_of_tuned_features(split, backbone, bank):
    method = learned("gcd", split, backbone, bank, n_epochs=1, seed=2)
    centroids = method.assigner_.vectors
    unit = method.features_ / np.linalg.norm(method.features_, axis=1, keepdims=True)
    nearest = np.linalg.norm(unit[:, None] - centroids, axis=2).argmin(axis=1)
    assert (method.labels_ == nearest).mean() > 0.85  # k-means may move a centroid after the last assignment
    assert (method.confidence_[method.labels_ != nearest] == 0).all()


def test_networks_without_norm_train_fewer_steps():
    def n_steps(n_categories, ends_in_norm):
        fitted = GCDConfig().small().fitted(2000, n_categories, ends_in_norm)
        return fitted.n_epochs * fitted.n_steps

    assert n_steps(10, False) == 200
    assert 300 <= n_steps(60, False) < 310  # an epoch more or less
    assert n_steps(60, True) >= 1200
    assert MuGCDConfig().small().fitted(2000, 60, False).stage1 == GCDConfig().small().fitted(2000, 60, False)
