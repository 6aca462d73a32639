from __future__ import annotations

import json

import numpy as np
import pytest

from justright.selection.diagnosis import (
    EVERYTHING,
    MAX_PER_CLASS,
    OWN,
    Diagnosis,
    diagnose,
    discriminant_features,
    hide_classes,
    sampled,
)
from justright.utils.errors import DegenerateError


def signal_and_noise(n_own=12, n_pool=20, per=10, dim=24, seed=0):
    """Classes that differ in four directions only, among directions of large variance without information.

    The first half of the classes of the pool is like that too. In the other half these four directions have the large
    variance without information, and the others have the information.
    """
    rng = np.random.default_rng(seed)
    loud = np.where(np.arange(dim) < 4, 0.25, 1.0)

    def drawn(centers, labels):
        misleads = (labels >= 2 * n_own + n_pool // 2)[:, None]
        scale = np.where(misleads, np.where(np.arange(dim) < 4, 3.0, 0.05), loud)
        return centers[labels] + scale * rng.normal(size=(len(labels), dim)) + 3.0

    centers = np.zeros((2 * n_own + n_pool, dim))
    centers[: 2 * n_own, :4] = rng.normal(size=(2 * n_own, 4))
    centers[2 * n_own : 2 * n_own + n_pool // 2, :4] = rng.normal(size=(n_pool // 2, 4))
    centers[2 * n_own + n_pool // 2 :, 4:] = 2 * rng.normal(size=(n_pool - n_pool // 2, dim - 4))
    own, pool = np.repeat(np.arange(n_own), per), np.repeat(np.arange(2 * n_own, 2 * n_own + n_pool), per)
    target = np.repeat(np.arange(2 * n_own), per)
    return (drawn(centers, own), own), (drawn(centers, pool), pool), drawn(centers, target), 2 * n_own


def part_of(pool, low, high):
    kept = (pool[1] >= low) & (pool[1] < high)
    return pool[0][kept], pool[1][kept]


def test_helpful_pool_is_recommended():
    own, pool, target, k = signal_and_noise()
    result = diagnose(own, part_of(pool, 24, 34), target, k, n_draws=4)
    assert result.winner == EVERYTHING
    assert result.verdict.startswith("Take none (the whole pool): ")
    assert result.verdict.endswith("the pool is ahead in 4 of 4 draws.")
    assert result.everything > result.own
    assert result.difference.mean == pytest.approx(result.everything - result.own)


def test_harmful_pool_is_not_recommended():
    own, pool, target, k = signal_and_noise()
    result = diagnose(own, part_of(pool, 34, 44), target, k, n_draws=4)
    assert result.winner == OWN
    assert result.verdict.startswith("Take own (no pool): ")
    assert result.verdict.endswith("own labels are ahead in 4 of 4 draws.")


def test_the_pool_wins_unless_own_labels_are_clearly_ahead():
    everything = np.full(8, 0.5)
    assert Diagnosis.of(np.array([0.6] * 6 + [0.4, 0.4]), everything, 10).winner == EVERYTHING
    assert Diagnosis.of(np.array([0.6] * 7 + [0.4]), everything, 10).winner == OWN


def test_verdict_and_method_are_sentences():
    result = Diagnosis.of(np.array([0.4, 0.5]), np.array([0.6, 0.6]), 10)
    assert "60.0 % of hidden images are right, without it 45.0 %" in result.verdict
    assert (result.n_better, result.n_draws) == (2, 2)
    assert "5 of your 10 labeled classes" in result.how


def test_equal_seeds_give_equal_results():
    data = signal_and_noise(n_own=6, per=6)
    one, two = (diagnose(*data, n_draws=2, seed=3) for _ in range(2))
    assert one == two
    assert json.loads(json.dumps(one.to_json()))["n_draws"] == 2
    assert diagnose(*data, n_draws=2, seed=4) != one


def test_pool_and_own_labels_may_overlap():
    own, pool, target, k = signal_and_noise()
    renamed = (pool[0], pool[1] - pool[1].min())
    assert diagnose(own, pool, target, k, n_draws=2) == diagnose(own, renamed, target, k, n_draws=2)


def test_too_few_classes_and_draws_are_rejected():
    own, pool, target, k = signal_and_noise(n_own=3)
    with pytest.raises(DegenerateError, match="3 own classes"):
        diagnose(own, pool, target, k)
    with pytest.raises(DegenerateError, match="1 draws"):
        diagnose(*signal_and_noise(), n_draws=1)
    own, pool, target, k = signal_and_noise()
    with pytest.raises(DegenerateError, match="0 of the pool"):
        diagnose(own, (pool[0][::5], pool[1][::5]), target, k)


def test_a_draw_hides_half_of_the_classes():
    labels = np.repeat(np.arange(10, 17), 8)
    known = hide_classes(labels, np.random.default_rng(3))
    is_hidden = known == -1
    assert sorted(is_hidden[labels == label].sum() for label in range(10, 17)) == [4, 4, 4, 4, 8, 8, 8]
    assert (known[~is_hidden] == labels[~is_hidden]).all()


def test_large_classes_are_sampled_and_tiny_ones_left_out():
    labels = np.repeat([0, 1, 2], [200, 3, 5])
    features, kept = sampled(np.random.default_rng(0).normal(size=(208, 5)), labels, seed=0, what="own")
    assert np.bincount(kept).tolist() == [MAX_PER_CLASS, 0, 5]
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1)


def test_two_classes_have_one_discriminant():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 200)
    pool = rng.normal(size=(400, 3)) + 4.0 * np.outer(labels, [1.0, 0.0, 0.0])
    seen = discriminant_features(pool, labels, np.eye(3))
    assert seen.shape == (3, 1)
    moved = np.abs(seen - discriminant_features(pool, labels, np.zeros((1, 3)))).ravel()
    assert moved[0] > 5 * moved[1:].max()


def test_weights_count_like_repeated_images():
    rng = np.random.default_rng(0)
    pool, labels, target = rng.normal(size=(30, 4)), np.repeat(np.arange(3), 10), rng.normal(size=(5, 4))
    twice = np.concatenate([np.arange(30), np.arange(10)])
    weighted = discriminant_features(pool, labels, target, np.repeat([2.0, 1.0, 1.0], 10))
    repeated = discriminant_features(pool[twice], labels[twice], target)
    assert np.abs(weighted) == pytest.approx(np.abs(repeated), abs=1e-9)  # a direction may point either way


def test_identical_features_in_each_class_raise():
    pool = np.repeat(np.eye(2), 3, axis=0)
    with pytest.raises(DegenerateError, match="copies of one feature"):
        discriminant_features(pool, np.repeat([0, 1], 3), np.eye(2))
