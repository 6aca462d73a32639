from __future__ import annotations

import math

import pytest
import torch
from tests.losses.batches import draw_batch, gradient, unit

from justright.losses import (
    DistanceSupConLoss,
    HierarchyLoss,
    SelExObjective,
    SelExSettings,
    SmoothedContrastiveLoss,
)
from justright.losses.self_expertise import apart_by_clusters, apart_by_reach, distance_logits

LEVELS = torch.tensor([[0, 1, 2, 0, 3, 1, 4], [0, 1, 1, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0, 0]])


def rows_of(projections, normalized=True):
    return [unit(row) if normalized else row for view in projections.tolist() for row in view]


def log_softmax_as_loops(rows, i, temperature):
    """By row, of all rows but i itself."""
    others = [n for n in range(len(rows)) if n != i]
    logits = {n: -math.dist(rows[i], rows[n]) / temperature for n in others}
    log_norm = math.log(sum(math.exp(value) for value in logits.values()))
    return {n: value - log_norm for n, value in logits.items()}


def sup_contrastive_as_loops(rows, classes, weight, temperature):
    """Over rows of images with a class only."""
    kept = [i for i, class_ in enumerate(classes) if class_ != -1]
    rows, classes, weight = ([each[i] for i in kept] for each in (rows, classes, weight))
    total = 0.0
    for i in range(len(rows)):
        log_p = log_softmax_as_loops(rows, i, temperature)
        own = [value for n, value in log_p.items() if classes[n] == classes[i]]
        total -= weight[i] * sum(own) / len(own)
    return total / len(rows)


def hierarchy_as_loops(projections, levels, labels, weight, temperature):
    rows, total = rows_of(projections), 0.0
    weight = [1.0 if label == -1 else w for label, w in zip(labels.tolist(), weight.tolist(), strict=True)] * 2
    for level, clusters in enumerate(levels.tolist()):
        size = max(16, math.floor(len(rows[0]) / 2 ** (level + 1)))
        sliced = [row[:size] for row in rows]
        total += 2.0 ** -(level + 1) * sup_contrastive_as_loops(sliced, clusters * 2, weight, temperature)
    return total


def smoothed_as_loops(projections, apart, smoothing, temperature):
    rows, n_images, total = rows_of(projections), projections.shape[1], 0.0
    for i in range(len(rows)):
        log_p = log_softmax_as_loops(rows, i, temperature)
        other_view, mass = (i + n_images) % len(rows), sum(apart[i])
        for n, value in log_p.items():
            q = apart[i][n] / mass if mass else float(n == other_view)
            total -= ((1 - smoothing) * (n == other_view) + smoothing * q) * value
    return total / len(rows)


def apart_as_loops(levels):
    n = levels.shape[1]
    rows = [levels[:, i % n].tolist() for i in range(2 * n)]
    return [[sum(2.0**-k * (a[k] != b[k]) for k in range(len(levels))) for b in rows] for a in rows]


def near(value, rel=1e-6):
    return pytest.approx(value, rel=rel)


@pytest.mark.parametrize("seed", range(3))
def test_supervised_loss_agrees_with_loops(seed):
    batch = draw_batch(seed=seed)
    rows = rows_of(batch.projections, normalized=False)
    expected = sup_contrastive_as_loops(rows, batch.labels.tolist() * 2, batch.weight.tolist() * 2, 0.07)
    assert DistanceSupConLoss()(batch.projections, batch.labels, batch.weight).item() == near(expected)


@pytest.mark.parametrize("dim", [6, 40, 160])
def test_hierarchy_loss_agrees_with_loops(dim):
    batch = draw_batch(dim=dim)
    found = HierarchyLoss(0.1)(batch.projections, LEVELS, batch.labels, batch.weight)
    assert found.item() == near(hierarchy_as_loops(batch.projections, LEVELS, batch.labels, batch.weight, 0.1))


@pytest.mark.parametrize("smoothing", [0.0, 0.4, 1.0])
def test_smoothed_loss_agrees_with_loops(smoothing):
    z = draw_batch().projections
    apart = apart_by_clusters(LEVELS)
    assert apart.tolist() == apart_as_loops(LEVELS)
    found = SmoothedContrastiveLoss(SelExSettings(smoothing=smoothing, temperature_unsup=0.5))(z, apart)
    assert found.item() == near(smoothed_as_loops(z, apart.tolist(), smoothing, 0.5))


@pytest.mark.parametrize("smoothing", [0.0, 0.5, 1.0])
def test_target_rows_sum_to_1_without_the_own_cluster(smoothing):
    loss = SmoothedContrastiveLoss(SelExSettings(smoothing=smoothing))
    targets = loss.targets(apart_by_clusters(LEVELS))
    torch.testing.assert_close(targets.sum(dim=1), torch.ones(14))
    assert targets.diagonal().tolist() == [0.0] * 14
    assert targets[0, 3] == 0  # alike at every level
    assert targets[0, 7] == pytest.approx(1 - smoothing)  # the other view
    if smoothing:
        assert targets[0, 1] > targets[0, 6] > 0  # different at two levels, and at one


def test_single_cluster_targets_the_other_view():
    z = draw_batch().projections
    alike = apart_by_clusters(torch.zeros(2, 7, dtype=torch.int64))
    found = SmoothedContrastiveLoss(SelExSettings(smoothing=1.0))(z, alike)
    assert found == SmoothedContrastiveLoss(SelExSettings(smoothing=0.0))(z, alike)


def test_images_beyond_the_reach_are_apart():
    features = torch.tensor([[[0.0], [1.0], [3.0]], [[0.0], [1.0], [3.0]]])
    reach = torch.tensor([[0.5, 2.5, 1.5], [torch.inf, 0.5, 2.5]])
    apart = apart_by_reach(features, reach)
    assert apart[:3, :3].tolist() == [[0.0, 0.5, 1.5], [1.0, 0.0, 1.0], [1.0, 0.5, 0.0]]
    assert torch.equal(apart[3:, 3:], apart[:3, :3])
    assert torch.equal(apart[:3, 3:], apart[:3, :3])


def test_large_features_are_all_apart():
    """As in the public code: distances of features as they are, radii of unit features."""
    features = draw_batch().projections
    reach = torch.full((2, 7), 1.0)
    assert 0 < (apart_by_reach(0.3 * features, reach) > 0).sum() < 14 * 13
    assert (apart_by_reach(100 * features, reach) > 0).sum() == 14 * 13


def test_equal_rows_have_finite_gradients():
    rows = torch.ones(4, 3).requires_grad_()
    logits = distance_logits(rows, 0.07)
    logits.log_softmax(dim=1).masked_fill(torch.eye(4, dtype=torch.bool), 0.0).sum().backward()
    assert torch.isfinite(rows.grad).all()
    assert logits.diagonal().tolist() == [-torch.inf] * 4


def test_autocast_does_not_lower_the_precision():
    rows = torch.randn(8, 32, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under_autocast = distance_logits(rows, 0.07)
    assert torch.equal(under_autocast, distance_logits(rows, 0.07))


def test_objective_is_the_weighted_sum_of_its_losses():
    batch, apart = draw_batch(), apart_by_clusters(LEVELS)
    settings = SelExSettings(supervised_share=0.3, smoothing=0.5)
    total, terms = SelExObjective(settings)(batch.projections, LEVELS, apart, batch.labels, batch.weight)
    unsup = smoothed_as_loops(batch.projections, apart.tolist(), 0.5, 1.0)
    rows, weight = rows_of(batch.projections), batch.weight.tolist() * 2
    sup = sup_contrastive_as_loops(rows, batch.labels.tolist() * 2, weight, 0.07)
    levelled = hierarchy_as_loops(batch.projections, LEVELS, batch.labels, batch.weight, 0.07)
    found = {name: value.item() for name, value in terms.items()}
    assert found == {"smoothed_contrastive": near(unsup), "sup_contrastive": near(sup), "hierarchy": near(levelled)}
    assert total.item() == near(0.7 * unsup + 0.3 * (sup + levelled) / 2)


def test_the_weight_of_an_unlabeled_image_is_not_read():
    batch, apart = draw_batch(), apart_by_clusters(LEVELS)
    other = torch.where(batch.labels == -1, 99.0, batch.weight)
    totals = [
        SelExObjective()(batch.projections, LEVELS, apart, batch.labels, weight).total
        for weight in (batch.weight, other)
    ]
    assert totals[0] == totals[1]


def test_gradient_exists_without_labels():
    z = draw_batch().projections
    labels, weight = torch.full((7,), -1), torch.ones(7, dtype=z.dtype)
    found = gradient(lambda rows: SelExObjective()(rows, LEVELS, apart_by_clusters(LEVELS), labels, weight).total, z)
    assert torch.isfinite(found).all()
    assert found.abs().max() > 0
