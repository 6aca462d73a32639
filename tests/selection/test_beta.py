from __future__ import annotations

import logging
import math

import numpy as np
import pytest

from justright.selection import BetaSelector, TargetFeatures, beta
from justright.selection.beta import (
    REDUCTION,
    BetaCurve,
    harden,
    similarity_to_target,
    warnings_about,
)
from justright.utils.errors import DegenerateError, JustrightError, NothingSelectedError


def eq_13_as_loops(pool, labels, target, alpha, beta):
    """Eq. 7, 12, 11 and 13 with a clipped cosine, number by number."""

    def cosine(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))

    norm = math.gamma(alpha) * math.gamma(beta) / math.gamma(alpha + beta)
    weights = []
    for c in sorted(set(labels.tolist())):
        rows = [row for row, label in zip(pool.tolist(), labels.tolist(), strict=True) if label == c]
        centroid = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        x = max(min(cosine(centroid, image) for image in target.tolist()), 0.0)
        weights.append(x ** (alpha - 1) * (1 - x) ** (beta - 1) / norm)
    return weights


def fan_of_classes(degrees):
    """One class per angle to a target that lies at 0 degrees."""
    angle = np.deg2rad(degrees)
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(len(degrees)), 5)
    places = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return (
        places[labels] * rng.uniform(1, 2, (len(labels), 1)),
        labels,
        np.array([[1.0, 0.0]]) * rng.uniform(1, 2, (9, 1)),
    )


@pytest.mark.parametrize(("alpha", "beta"), [(5.0, 5.0), (3.0, 7.0), (1.0, 1.0), (5.0, 1.0)])
def test_weights_agree_with_eq_13_as_loops(cloud, alpha, beta):
    selector = BetaSelector(alpha, beta).fit(cloud.pool, cloud.labels, cloud.target)
    expected = eq_13_as_loops(cloud.pool, cloud.labels, cloud.target, alpha, beta)
    assert selector.class_weight_ == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_alpha_1_beta_1_gives_weight_1(cloud):
    for domain in ("clip", "affine", "minmax", "rank"):
        selector = BetaSelector(1.0, 1.0, domain=domain).fit(cloud.pool, cloud.labels, cloud.target)
        assert np.all(selector.class_weight_ == 1.0)


def test_largest_weight_is_between_nearest_and_farthest_class():
    selector = BetaSelector().fit(*fan_of_classes([0, 20, 45, 60, 80, 135, 180]))
    assert selector.class_weight_.argmax() == 3  # cos 60 = 0.5
    assert selector.class_weight_[[0, 5, 6]] == pytest.approx([0.0, 0.0, 0.0], abs=1e-12)


def test_similarity_is_the_cosine_to_the_farthest_image():
    selector = BetaSelector().fit(*fan_of_classes([0, 45, 60]))
    assert selector.class_similarity_ == pytest.approx(np.cos(np.deg2rad([0, 45, 60])))


def test_reductions_are_ordered(cloud):
    def similarity(reduction):
        return (
            BetaSelector(reduction=reduction, domain="affine")
            .fit(cloud.pool, cloud.labels, cloud.target)
            .class_similarity_
        )

    low, tenth, middle, high = (similarity(r) for r in ("min", 0.1, "median", "max"))
    assert np.all(low <= tenth)
    assert np.all(tenth <= middle)
    assert np.all(middle <= high)
    assert similarity(0.5) == pytest.approx(middle)


def test_normalize_scales_all_weights_equally(cloud):
    data = (cloud.pool, cloud.labels, cloud.target)
    raw = BetaSelector(domain="affine").fit(*data).class_weight_
    by_max = BetaSelector(domain="affine", normalize="max").fit(*data)
    by_mean = BetaSelector(domain="affine", normalize="mean").fit(*data)
    assert by_max.class_weight_ == pytest.approx(raw / raw.max())
    assert by_mean.sample_weight(cloud.labels).mean() == pytest.approx(1.0)
    assert by_mean.class_weight_ / by_mean.class_weight_[0] == pytest.approx(raw / raw[0])


def test_threshold_makes_weights_0_and_1(cloud):
    data = (cloud.pool, cloud.labels, cloud.target)
    soft = BetaSelector(domain="affine").fit(*data).class_weight_
    hard = BetaSelector(domain="affine", threshold=float(np.median(soft))).fit(*data)
    assert np.array_equal(hard.class_weight_, (soft > np.median(soft)).astype(float))
    assert hard.class_weight_.sum() == 5
    for weight, reason in zip(hard.class_weight_, hard.reason_, strict=True):
        assert reason.startswith("kept:" if weight else ("too far:", "too near:"))


def test_reasons_distinguish_far_from_near():
    selector = BetaSelector(threshold=0.5).fit(*fan_of_classes([5, 60, 95]))
    near, kept, far = selector.reason_
    assert near.startswith("too near: similarity 1.00")
    assert kept == "kept: similarity 0.50"
    assert far.startswith("too far: similarity -0.09")


def test_image_level_weighs_each_image(cloud):
    data = (cloud.pool, cloud.labels, cloud.target)
    by_image = BetaSelector(level="image", domain="affine").fit(*data)
    alone = BetaSelector(domain="affine").fit(cloud.pool, np.arange(60), cloud.target)
    assert by_image.image_weight_ == pytest.approx(alone.class_weight_)
    assert np.array_equal(by_image.sample_weight(cloud.labels), by_image.image_weight_)
    assert by_image.class_weight_[3] == pytest.approx(by_image.image_weight_[cloud.labels == 3].mean())
    with pytest.raises(JustrightError, match="labels other than"):
        by_image.sample_weight(cloud.labels[:5])


def test_official_reproduces_the_public_code(cloud):
    """Image level, raw cosine into scipy's density, divided by the maximum, clamped to [0.01, 1]."""
    from scipy.stats import beta as beta_distribution

    unit = [features / np.linalg.norm(features, axis=1, keepdims=True) for features in (cloud.pool, cloud.target)]
    weight = beta_distribution.pdf((unit[0] @ unit[1].T).min(axis=1), 5, 5)
    expected = np.clip(weight / weight.max(), 0.01, 1.0)
    selector = BetaSelector.official().fit(cloud.pool, cloud.labels, cloud.target)
    assert selector.image_weight_ == pytest.approx(expected, rel=1e-9)
    assert (selector.image_similarity_ < 0).any()  # raw cosines: the density is 0 there


def test_all_weights_0_raises_with_advice():
    with pytest.raises(DegenerateError, match="all 3 weights are 0") as error:
        BetaSelector().fit(*fan_of_classes([100, 120, 150]))
    assert "affine" in str(error.value)
    with pytest.raises(DegenerateError, match="at threshold 9"):
        BetaSelector(threshold=9.0).fit(*fan_of_classes([30, 60]))


def test_infinite_weight_raises():
    with pytest.raises(DegenerateError, match="infinite weight"):
        BetaSelector(0.5, 0.5).fit(*fan_of_classes([60, 120]))


def test_zero_centroid_raises():
    pool, labels = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]), np.array([4, 4, 5])
    with pytest.raises(DegenerateError, match="class 4 cancel out"):
        BetaSelector().fit(pool, labels, np.ones((3, 2)))


def test_fit_warns_about_tiny_weights(caplog):
    with caplog.at_level(logging.WARNING):
        BetaSelector().fit(*fan_of_classes([88, 89, 89.5]))
    assert "100% of the weights are below 0.001" in caplog.text


@pytest.mark.parametrize(
    "wrong",
    [
        {"reduction": "mean"},
        {"reduction": 1.5},
        {"domain": "log"},
        {"normalize": "sum"},
        {"level": "pixel"},
        {"threshold": 0.5, "normalize": "max"},
    ],
    ids=str,
)
def test_invalid_options_are_rejected_by_name(cloud, wrong):
    with pytest.raises(JustrightError, match=next(iter(wrong))):
        BetaSelector(**wrong).fit(cloud.pool, cloud.labels, cloud.target)


def test_domain_target_uses_the_clusters_of_the_target(cloud):
    """The median over clusters of the cosine of their centroid to the farthest image, cluster by cluster."""
    selector = BetaSelector(domain="target", n_clusters=5).fit(cloud.pool, cloud.labels, cloud.target)
    result = []
    for k in range(5):
        centroid = cloud.target[cloud.clusters == k].mean(axis=0)
        cosines = cloud.target @ centroid / np.linalg.norm(cloud.target, axis=1) / np.linalg.norm(centroid)
        result.append(cosines.min())
    assert selector.target_similarity_ == pytest.approx(np.median(result), rel=1e-6)
    unit = np.clip(selector.class_similarity_ / (2 * selector.target_similarity_), 0, 1)
    expected = [630 * x**4 * (1 - x) ** 4 for x in unit]
    assert selector.class_weight_ == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert math.isnan(BetaSelector().fit(cloud.pool, cloud.labels, cloud.target).target_similarity_)


def final_weights(counts=(1, 1, 1), **params):
    selector = BetaSelector(2.0, 1.0, **params)  # the density is twice the similarity
    selector.target_similarity_ = float("nan")
    return selector._final(np.array([0.25, 0.5, 1.0]), np.array(counts)).tolist()


def test_weights_are_normalized_then_clipped():
    assert final_weights(normalize="max") == pytest.approx([0.25, 0.5, 1.0])
    assert final_weights((1, 1, 2), normalize="mean") == pytest.approx([4 / 11, 8 / 11, 16 / 11])
    assert final_weights(weight_range=(0.75, 1.5)) == pytest.approx([0.75, 1.0, 1.5])
    with pytest.raises(NothingSelectedError, match="all 3 weights are 0 at threshold 3"):
        final_weights(threshold=3.0)


def test_harden_keeps_weights_above_the_threshold():
    assert harden(np.array([0.0, 0.5, 0.6]), 0.5).tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("domain", ["clip", "affine", "target"])
def test_the_peak_is_where_the_density_is_highest(domain):
    curve = BetaCurve(3.0, 5.0, domain, reference=0.4)
    grid = np.linspace(-0.999, 0.999, 20001)
    assert curve.peak() == pytest.approx(grid[curve.density(grid).argmax()], abs=1e-3)
    assert BetaCurve(1.0, 5.0, domain).peak() is None
    assert BetaCurve(5.0, 5.0, "rank").peak() is None


def test_figure_shows_the_weights_of_a_threshold_and_a_range(cloud):
    selector = BetaSelector(2.0, 1.0, domain="affine", threshold=1.2, weight_range=(0.1, 1.0))
    selector.fit(cloud.pool, cloud.labels, cloud.target)
    (soft, curve) = selector.plot(selector.weights_).curves
    assert soft[1].max() == pytest.approx(2.0)
    assert np.array_equal(curve[1], np.where(soft[1] > 1.2, 1.0, 0.1))


def test_the_density_is_infinite_at_a_pole():
    assert BetaCurve(0.5, 0.5, "clip").density(np.array([0.0, 0.5]))[0] == np.inf


def reasons(weight, similarity, **params):
    selector = BetaSelector(**params)
    selector.target_similarity_ = float("nan")
    return selector._reasons(np.array(weight), np.array(similarity))


def test_reason_has_similarity_and_weight():
    weight, similarity = [0.5, 0.0, 0.0], [0.4, 0.1, 0.9]
    assert reasons(weight, similarity) == [
        "similarity 0.40 weighs 0.50",
        "too far: similarity 0.10 weighs 0.00",
        "too near: similarity 0.90 weighs 0.00",
    ]
    assert reasons(weight, similarity, alpha=1.0, threshold=0.1)[:2] == [
        "kept: similarity 0.40",
        "left out: similarity 0.10 weighs 0.00",
    ]


def test_warning_if_nearly_all_weights_vanish():
    assert warnings_about(np.array([1e-4] * 9 + [1.0])) == ()
    (warning,) = warnings_about(np.array([1e-4] * 19 + [1.0]))
    assert warning.startswith("95% of the weights are below 0.001: labels will hardly count")


REDUCTIONS = ["min", "median", "max", 0.0, 0.1, 1.0]


@pytest.fixture
def points_to_compare():
    rng = np.random.default_rng(0)
    return rng.normal(size=(5, 4)), rng.normal(size=(200, 4)).astype(np.float32)


def similarity_as_loops(centroids, target, reduction):
    """The cosine to the farthest, the nearest or the image in the middle, one by one."""
    result = []
    for c in centroids.tolist():
        cosines = sorted(float(np.dot(c, x) / np.linalg.norm(c) / np.linalg.norm(x)) for x in target.astype(float))
        middle = (cosines[99] + cosines[100]) / 2
        result.append({"min": cosines[0], "median": middle, "max": cosines[-1]}[reduction])
    return result


@pytest.mark.parametrize("reduction", ["min", "median", "max"])
def test_similarity_agrees_with_loops(points_to_compare, reduction):
    result = similarity_to_target(points_to_compare[0], TargetFeatures([points_to_compare[1]]), reduction)
    assert result == pytest.approx(similarity_as_loops(*points_to_compare, reduction), abs=1e-6)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_similarity_does_not_depend_on_shards(points_to_compare, reduction):
    centroids, target = points_to_compare
    whole = similarity_to_target(centroids, TargetFeatures([target]), reduction)
    shards = TargetFeatures([target[:50], target[50:51], target[:0], target[51:]])
    assert similarity_to_target(centroids, shards, reduction) == pytest.approx(whole, abs=1e-7)


@pytest.mark.parametrize("n_cosines", [1, 450])
def test_a_quantile_of_many_cosines_is_computed_for_some_centroids_at_a_time(points_to_compare, n_cosines, monkeypatch):
    centroids, target = points_to_compare[0], TargetFeatures([points_to_compare[1]])
    whole = similarity_to_target(centroids, target, 0.3)
    monkeypatch.setattr(beta, "MAX_COSINES", n_cosines)
    assert similarity_to_target(centroids, target, 0.3) == pytest.approx(whole, abs=1e-7)


def test_reduction_is_a_word_or_a_quantile():
    assert all(REDUCTION.allows(each) for each in REDUCTIONS)
    assert not REDUCTION.allows(1.5)
