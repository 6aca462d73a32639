from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import silhouette_score

from justright.clustering import SemiSupKMeans
from justright.clustering.baselines import BASELINES
from justright.clustering.principal import principal_directions
from justright.discovery.assigner import CategoryAssigner
from justright.discovery.configs import Config
from justright.features.table import FeatureTable
from justright.runs import frozen_check as module
from justright.runs.frozen_check import FrozenCheck, clustered_rows, frozen_check, simple_results

CENTERS = np.eye(5, dtype=np.float32)
TRUE = np.arange(100) % 5
HELD_OUT = np.arange(8)


def around(labels, noise, seed=0):
    return CENTERS[labels] + np.random.default_rng(seed).normal(scale=noise, size=(len(labels), 5)).astype(np.float32)


def method(noise, accuracy, clusters=TRUE, directions="never"):
    """A trained method: classes 3 and 7 of the pool are known, categories 2 to 4 are new."""
    return SimpleNamespace(
        known_labels_=(3, 7),
        n_categories_=5,
        seed=0,
        class_rows_=np.arange(20),
        class_labels_=np.array([0, 1] * 10),
        labeled_rows_=np.arange(len(HELD_OUT), 20),
        held_out_rows_=HELD_OUT,
        held_out_accuracy_=accuracy,
        trained_share_=1.0,
        features_=around(TRUE, noise),
        labels_=np.asarray(clusters),
        is_given_=np.zeros(len(TRUE), dtype=bool),
        assigner_=CategoryAssigner.of_prototypes(CENTERS),
        config_=Config(directions=directions),
        backbone=SimpleNamespace(cut=SimpleNamespace(ends_in_norm=False)),
    )


@pytest.fixture
def frozen():
    """Features before training: labeled images of the known classes and of a guide class, and the target."""
    of_pool = np.array([0, 1] * 10 + [2] * 10)
    pool = FeatureTable.of(around(of_pool, 0.1, seed=1), label=np.array([3, 7, 9])[of_pool])
    return pool, FeatureTable.of(around(TRUE, 0.1, seed=2))


def test_clusters_are_those_of_kmeans(frozen):
    result = frozen_check(method(0.1, 1.0), *frozen)
    assert result.n_used_by_kmeans == 5
    assert result.held_out_accuracy == (1.0, 1.0), "known class k is cluster k"


def test_kmeans_uses_principal_directions_if_configured(frozen):
    pool, target = frozen
    known, n_known = np.asarray(pool.features[8:20]), 12
    seen = np.concatenate([known, np.asarray(target.features)])
    center, directions = principal_directions(seen, 5)
    turned = (seen - center) @ directions
    given = np.concatenate([np.searchsorted((3, 7), pool.labels[8:20]), np.full(100, -1)])
    clusters = SemiSupKMeans(5, n_init=module.N_INIT, seed=0).fit(turned, given)
    for chosen, is_turned in (("auto", True), ("always", True), ("never", False)):
        result = frozen_check(method(0.1, 1.0, directions=chosen), *frozen)
        expected = silhouette_score(turned[n_known:], clusters.labels_[n_known:], metric="cosine")
        assert (result.silhouette[1] == pytest.approx(expected, abs=1e-6)) == is_turned
        if is_turned:
            again = clusters.predict((np.asarray(pool.features[HELD_OUT]) - center) @ directions)
            assert result.held_out_accuracy[1] == np.mean(again == np.searchsorted((3, 7), pool.labels[HELD_OUT]))


def test_both_silhouettes_use_the_same_number_of_directions(frozen):
    trained = method(0.1, 1.0, directions="always")
    center, directions = principal_directions(trained.features_, 5)
    expected = silhouette_score((trained.features_ - center) @ directions, TRUE, metric="cosine")
    assert frozen_check(trained, *frozen).silhouette[0] == pytest.approx(expected, abs=1e-6)


def test_constant_dimension_does_not_count_against_training(frozen):
    pool, target = (
        FeatureTable.of(np.hstack([each.features, _noise(len(each), seed)]), label=each.labels)
        for seed, each in enumerate(frozen)
    )
    trained = method(0.1, 1.0, directions="always")
    trained.features_ = np.asarray(target.features)  # training changed nothing, and its clusters are the true ones
    result = frozen_check(trained, pool, target)
    assert result.silhouette[0] >= 0.9 * result.silhouette[1]


def _noise(n_images, seed, n_dims=200):
    return np.random.default_rng(seed).normal(scale=0.05, size=(n_images, n_dims)).astype(np.float32)


def test_equal_trained_result_is_recommended(frozen):
    result = frozen_check(method(0.05, 1.0), *frozen)
    assert result.silhouette[0] > result.silhouette[1] > 0.5
    assert result.to_json("simgcd")["recommended"] == "simgcd"
    assert "passed its check" in result.note("simgcd")


@pytest.mark.parametrize(
    ("noise", "accuracy", "clusters"),
    [
        (0.05, 0.25, TRUE),  # known classes are no longer recognized
        (2.0, 1.0, TRUE),  # features without clusters
        (0.05, 1.0, np.random.default_rng(0).permutation(TRUE)),  # clusters that have nothing to do with the features
        (0.05, 1.0, np.zeros_like(TRUE)),  # everything in one cluster
        (0.05, 1.0, np.minimum(TRUE, 2)),  # clear clusters, and categories without an image
    ],
)
def test_worse_trained_result_is_not_recommended(noise, accuracy, clusters, frozen):
    result = frozen_check(method(noise, accuracy, clusters), *frozen)
    assert result.to_json("simgcd")["recommended"] == "kmeans"
    assert "training did not help" in result.note("simgcd")
    assert "--method kmeans" in result.note("simgcd")


def test_without_held_out_images_the_silhouette_decides(frozen):
    trained = method(0.05, float("nan"))
    trained.labeled_rows_, trained.held_out_rows_ = np.arange(20), HELD_OUT[:0]
    result = frozen_check(trained, *frozen)
    assert result.held_out_accuracy is None
    assert result.is_worth_it
    assert "held-out" not in result.note("simgcd")


def test_kmeans_sees_only_labels_of_training(frozen):
    trained = method(0.05, 1.0)
    trained.class_labels_[8:14] = 1 - trained.class_labels_[8:14]  # with weight 0 they change nothing
    trained.labeled_rows_ = np.arange(14, 20)
    result = frozen_check(trained, *frozen)
    assert result.held_out_accuracy == (1.0, 1.0)


def test_without_labels_the_silhouette_decides(frozen):
    pool, target = frozen
    trained = method(0.05, float("nan"))
    trained.known_labels_, trained.labeled_rows_, trained.held_out_rows_ = (), HELD_OUT[:0], HELD_OUT[:0]
    trained.class_rows_ = trained.class_labels_ = HELD_OUT[:0]
    result = frozen_check(trained, pool, target)
    assert result.held_out_accuracy is None
    assert result.is_worth_it
    assert result.n_used_by_kmeans == 5


def test_known_classes_absent_from_the_target_do_not_count(frozen):
    pool, target = frozen
    shown = np.flatnonzero(TRUE >= 2)
    trained = method(0.05, 1.0)
    trained.features_, trained.labels_ = trained.features_[shown], trained.labels_[shown]
    trained.is_given_ = trained.is_given_[shown]
    result = frozen_check(trained, pool, FeatureTable.of(np.asarray(target.features)[shown]))
    assert result.used == (3, 5)
    assert result.is_worth_it
    assert "3 of 5 categories have images" in result.note("simgcd")


def test_large_target_is_subsampled(frozen, monkeypatch):
    monkeypatch.setattr(module, "MOST_IMAGES", 30)
    assert clustered_rows(100).tolist() == list(range(0, 100, 4))
    sizes = []
    monkeypatch.setattr(module, "_silhouette", lambda features, cluster: sizes.append(len(features)) or 0.5)
    frozen_check(method(0.05, 1.0), *frozen)
    assert sizes == [25, 25]


def test_small_difference_of_held_out_accuracy_is_noise():
    def is_worth_it(trained, frozen, n_held_out):
        return FrozenCheck((trained, frozen), n_held_out, (0.2, 0.2), (5, 5), 1).is_worth_it

    assert is_worth_it(0.45, 0.5, n_held_out=20)
    assert not is_worth_it(0.45, 0.5, n_held_out=2000)
    assert is_worth_it(0.0, 1.0, n_held_out=1), "a single image is not enough"
    assert not is_worth_it(0.0, 1.0, n_held_out=10)


def test_note_says_that_a_lower_held_out_accuracy_is_chance():
    def note(trained, frozen, n_held_out):
        return FrozenCheck((trained, frozen), n_held_out, (0.2, 0.2), (5, 5), 1).note("simgcd")

    assert "held-out accuracy 83%, k-means 100%, within chance for 6 images;" in note(5 / 6, 1.0, 6)
    assert "chance" not in note(1.0, 0.9, 20)
    assert "chance" not in note(0.5, 1.0, 2000)


@pytest.mark.parametrize(
    ("trained", "frozen", "expected"),
    [
        (0.1, 0.2, True),  # half as far apart
        (0.09, 0.2, False),
        (-1.0, -1.0, True),  # a single cluster in both
        (-0.15, -0.2, True),  # better than what k-means reaches, though not by half
        (-0.25, -0.2, False),
    ],
)
def test_trained_silhouette_must_reach_half_of_kmeans(trained, frozen, expected):
    assert FrozenCheck(None, 0, (trained, frozen), (5, 5), 5).is_worth_it is expected


@pytest.mark.parametrize(
    ("trained_share", "silhouette", "n_used", "expected"),
    [
        (4 / 72, (0.13, 0.23), 76, False),  # as seen: 52 % of the images right, and 71 % by k-means
        (4 / 72, (0.22, 0.23), 76, False),  # far fewer categories than k-means
        (4 / 72, (0.13, 0.23), 95, False),  # clusters that are less far apart
        (4 / 72, (0.22, 0.23), 93, True),  # it has not collapsed
        (0.5, (0.13, 0.23), 76, True),  # long enough to be judged as a whole training
        (1.0, (0.13, 0.23), 76, True),
    ],
)
def test_short_collapsed_training_is_not_recommended(trained_share, silhouette, n_used, expected):
    check = FrozenCheck((0.9, 0.9), 40, silhouette, (n_used, 95), 95, trained_share=trained_share)
    assert check.is_worth_it is expected
    note = check.note("simgcd")
    assert ("passed its check" in note) is expected
    assert ("there was time for 6% of the epochs" in note) == (trained_share < 0.1)
    assert ("training was cut short and did not help" in note and "--minutes" in note) is not expected


def test_check_is_plain_json():
    check = FrozenCheck((0.9, 0.8), 40, (0.2, 0.3), (5, 5), 1)
    assert check.to_json("gcd") == {
        "held_out_accuracy": (0.9, 0.8),
        "n_held_out": 40,
        "silhouette": (0.2, 0.3),
        "used": (5, 5),
        "trained_share": 1.0,
        "baselines": None,
        "simple": None,
        "recommended": "gcd",
    }


def test_kmeans_keeps_given_labels(frozen, monkeypatch):
    trained, given = method(0.05, 1.0), []
    trained.is_given_[:2] = True
    trained.labels_ = np.where(trained.is_given_, 1, TRUE)
    fit = SemiSupKMeans.fit
    monkeypatch.setattr(SemiSupKMeans, "fit", lambda self, x, labels: given.append(labels) or fit(self, x, labels))
    frozen_check(trained, *frozen)
    assert given[0][12:15].tolist() == [1, 1, -1]


def test_all_simple_methods_are_compared(frozen):
    trained = method(0.1, 1.0)
    trained.categories_ = ()
    result = frozen_check(trained, *frozen, simple_results(trained, *frozen, ()))
    assert set(result.simple) == set(BASELINES)
    assert result.simple["Ward"] > 0.5
    assert frozen_check(method(0.1, 1.0), *frozen).simple is None


def test_the_best_simple_method_decides():
    parts = {"n_held_out": 0, "used": (5, 5), "n_used_by_kmeans": 5}
    usual = FrozenCheck(None, silhouette=(0.3, 0.4), **parts)
    assert usual.is_worth_it
    beaten = FrozenCheck(None, silhouette=(0.3, 0.4), simple={"Ward": 0.9, "k-means": 0.2}, **parts)
    assert not beaten.is_worth_it
    assert "0.30, needed 0.45, Ward on frozen features 0.90" in beaten.note("simgcd")
    assert FrozenCheck(None, silhouette=(0.3, 0.4), simple={"Ward": 0.1}, **parts).best_simple == ("k-means", 0.4)


def test_check_uses_the_written_categories(frozen):
    """Two answers of one training have different checks."""
    good, bad = method(0.1, 1.0), method(0.1, 1.0, clusters=np.roll(TRUE, 1) // 2 * 2)
    bad.own_labels_ = TRUE
    assert frozen_check(good, *frozen).silhouette[0] > frozen_check(bad, *frozen).silhouette[0] + 0.2
