from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.discovery.tiny import data_of
from threadpoolctl import threadpool_limits

from justright.clustering import SemiSupKMeans
from justright.clustering.principal import principal_directions
from justright.discovery.assigner import BLOCK_ROWS, CategoryAssigner, by_clusters
from justright.discovery.configs import Config


def rows(n, dim=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)


def scores_as_loops(assigner, features):
    found = np.zeros((len(features), len(assigner.vectors)))
    center = [0.0] * features.shape[1] if assigner.center is None else assigner.center.tolist()
    for i, row in enumerate(features.tolist()):
        h = [x - m for x, m in zip(row, center, strict=True)]
        if assigner.directions is not None:
            h = [sum(x * p for x, p in zip(h, column, strict=True)) for column in assigner.directions.T.tolist()]
        length = math.sqrt(sum(x * x for x in h))
        for k, (v, o) in enumerate(zip(assigner.vectors.tolist(), assigner.offset.tolist(), strict=True)):
            found[i, k] = sum(x / length * y for x, y in zip(h, v, strict=True)) + o
    return found


@pytest.mark.parametrize("made", [CategoryAssigner.of_prototypes, CategoryAssigner.of_centroids])
def test_scores_agree_with_loops(made):
    assigner, features = made(rows(4, seed=1)), rows(20)
    np.testing.assert_allclose(assigner.scores(features), scores_as_loops(assigner, features), atol=1e-5)


def test_center_is_subtracted_from_new_images():
    center = 3 * rows(1, seed=2)[0]
    assigner, features = CategoryAssigner.of_prototypes(rows(4, seed=1), center), rows(20)
    np.testing.assert_allclose(assigner.scores(features), scores_as_loops(assigner, features), atol=1e-5)
    labels, _, best = assigner.assign(features)
    assert assigner.calibrated(features, labels).with_reference(best).center is center


def test_scores_in_directions_agree_with_loops():
    assigner = CategoryAssigner.of_centroids(rows(4, 3, seed=1))
    assigner = replace(assigner, center=rows(1, seed=2)[0], directions=rows(5, 3, seed=3))
    np.testing.assert_allclose(assigner.scores(rows(20)), scores_as_loops(assigner, rows(20)), atol=1e-5)


def test_prototypes_score_by_the_cosine():
    prototypes, features = rows(4, seed=1), rows(20)
    cosine = [[f @ p / np.linalg.norm(f) / np.linalg.norm(p) for p in prototypes] for f in features]
    np.testing.assert_allclose(CategoryAssigner.of_prototypes(prototypes).scores(features), cosine, atol=1e-5)


def test_nearest_centroid_wins():
    centroids, features = 0.5 * rows(6, seed=1), rows(200)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    distance = np.linalg.norm(unit[:, None] - centroids, axis=2)
    cluster, _, _ = CategoryAssigner.of_centroids(centroids).assign(features)
    assert cluster.tolist() == distance.argmin(axis=1).tolist()


def test_confidence_is_the_softmax_of_the_best():
    assigner = CategoryAssigner(rows(4, seed=1), np.zeros(4, np.float32), temperature=0.3)
    cluster, confidence, best = assigner.assign(rows(50))
    scores = scores_as_loops(assigner, rows(50))
    share = np.exp(scores / 0.3) / np.exp(scores / 0.3).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(confidence, share.max(axis=1), rtol=1e-4)
    np.testing.assert_allclose(best, scores.max(axis=1), atol=1e-5)
    assert cluster.tolist() == scores.argmax(axis=1).tolist()
    for temperature in (1e-3, 10.0):
        _, extreme, _ = CategoryAssigner(assigner.vectors, assigner.offset, temperature).assign(rows(50))
        assert ((extreme > 0) & (extreme <= 1)).all()


def test_result_does_not_depend_on_block_size():
    assigner, features = CategoryAssigner.of_prototypes(rows(3, seed=1)), rows(BLOCK_ROWS + 5)
    last = assigner.assign(features[-9:])
    for whole, part in zip(assigner.assign(features), last, strict=True):
        np.testing.assert_allclose(whole[-9:], part, rtol=1e-5)


def test_no_images_get_no_categories():
    cluster, confidence, best = CategoryAssigner.of_prototypes(rows(3)).assign(np.empty((0, 5), np.float32))
    assert len(cluster) == len(confidence) == len(best) == 0


def drawn_from(assigner, features, temperature, seed=0):
    """Labels drawn with the probabilities at a temperature."""
    scores = assigner.scores(features).astype(np.float64) / temperature
    share = np.exp(scores - scores.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    draws = np.random.default_rng(seed).random(len(features))
    return (share.cumsum(axis=1) < draws[:, None]).sum(axis=1).clip(max=len(assigner.vectors) - 1)


@pytest.mark.parametrize("temperature", [0.05, 0.3, 2.0])
def test_calibration_recovers_the_true_temperature(temperature):
    assigner, features = CategoryAssigner.of_prototypes(rows(4, seed=1)), rows(6000)
    labels = drawn_from(assigner, features, temperature)
    found = assigner.calibrated(features, labels)
    assert found.temperature == pytest.approx(temperature, rel=0.15)
    cluster, confidence, _ = found.assign(rows(6000, seed=2))
    is_right = cluster == drawn_from(assigner, rows(6000, seed=2), temperature, seed=2)
    assert calibration_error(confidence, is_right) < 0.03


def calibration_error(confidence, is_right, n_bins=10):
    place = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps = [abs(confidence[place == b].mean() - is_right[place == b].mean()) for b in np.unique(place)]
    return float(np.average(gaps, weights=np.bincount(place)[np.unique(place)]))


def test_calibration_improves_likelihood_and_keeps_categories():
    assigner, features = CategoryAssigner.of_centroids(rows(4, seed=1)), rows(300)
    labels = np.random.default_rng(3).integers(0, 4, 300)
    found = assigner.calibrated(features, labels)

    def surprise(made):
        scores = made.scores(features).astype(np.float64) / made.temperature
        return float((np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(300), labels]).mean())

    assert surprise(found) < surprise(assigner)
    assert found.assign(features)[0].tolist() == assigner.assign(features)[0].tolist()


def test_without_labeled_images_nothing_is_calibrated():
    assigner = CategoryAssigner.of_prototypes(rows(4))
    assert assigner.calibrated(np.empty((0, 5), np.float32), np.empty(0, np.int64)) is assigner


def with_reference(assigner, features):
    return assigner.with_reference(assigner.assign(features)[2])


@pytest.mark.parametrize("level", [0.01, 0.05, 0.2])
def test_level_is_the_share_of_target_images_of_no_category(level):
    assigner = with_reference(CategoryAssigner.of_prototypes(rows(4, seed=1)), rows(5000))
    _, _, best = assigner.assign(rows(5000, seed=2))
    assert assigner.is_neither(best, level).mean() == pytest.approx(level, rel=0.35)


def test_distant_images_fit_no_category():
    near = np.eye(5, dtype=np.float32)[:3]
    target = np.repeat(near, 100, axis=0) + 0.1 * rows(300)
    assigner = with_reference(CategoryAssigner.of_prototypes(near), target)
    _, _, best = assigner.assign(-np.abs(target))
    assert assigner.is_neither(best, 0.01).all()
    _, _, best = assigner.assign(near)
    assert not assigner.is_neither(best, 0.01).any()


def test_nothing_is_neither_at_level_0_or_without_reference():
    assigner = CategoryAssigner.of_prototypes(rows(4))
    best = np.full(3, -1.0, np.float32)
    assert not assigner.is_neither(best, 0.5).any()
    assert not with_reference(assigner, rows(50)).is_neither(best, 0.0).any()


def features_for(data):
    return np.random.default_rng(0).normal(size=(len(data.images), 6)).astype(np.float32)


def test_clusters_start_with_the_known_classes(split):
    data = data_of(split, np.where(split.labeled.labels == 1, 0.0, 1.0))
    features = features_for(data)
    learned = by_clusters(data, features, 4, Config(n_init=3), 1, ends_in_norm=True)
    rows = np.concatenate([data.labeled, data.unlabeled])
    given = np.concatenate([data.labels[data.labeled], np.full(len(data.unlabeled), -1)])
    expected = SemiSupKMeans(4, n_init=3, seed=1).fit(features[rows], given)
    assert learned.labels.tolist() == expected.labels_[len(data.labeled) :].tolist()
    assert learned.assigner.vectors.shape == (4, 6)
    for number, label in enumerate(data.known_labels):
        own = rows[expected.labels_ == number]
        of_class = np.flatnonzero(split.labeled.labels == label)
        assert set(of_class) <= set(own.tolist())


@pytest.mark.parametrize(
    ("directions", "ends_in_norm", "is_turned"),
    [("never", False, False), ("auto", True, False), ("auto", False, True), ("always", True, True)],
)
def test_directions_setting_clusters_in_principal_directions(split, directions, ends_in_norm, is_turned):
    data = data_of(split)
    features = features_for(data)
    learned = by_clusters(data, features, 4, Config(n_init=3, directions=directions), 1, ends_in_norm)
    assert (learned.assigner.directions is not None) == is_turned
    given = np.concatenate([data.labels[data.labeled], np.full(len(data.unlabeled), -1)])
    rows, seen = np.concatenate([data.labeled, data.unlabeled]), features
    if is_turned:
        center, chosen = principal_directions(features[rows], 4)
        seen = (features - center) @ chosen
    expected = SemiSupKMeans(4, n_init=3, seed=1).fit(seen[rows], given)
    assert learned.labels.tolist() == expected.labels_[len(data.labeled) :].tolist()
    # new features are assigned to the nearest centroid
    unit = seen / np.linalg.norm(seen, axis=1, keepdims=True)
    nearest = np.linalg.norm(unit[:, None] - expected.centroids_, axis=2).argmin(axis=1)
    assert learned.assigner.assign(features)[0].tolist() == nearest.tolist()


def test_assignment_does_not_depend_on_threads():
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(9000, 500)).astype(np.float32), rng.integers(0, 40, 9000)
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, "blas"):
            assigner = CategoryAssigner.of_centroids(features[:40]).calibrated(features, labels)
            found.append([assigner.temperature, *(part.tobytes() for part in assigner.assign(features))])
    assert found[0] == found[1]
