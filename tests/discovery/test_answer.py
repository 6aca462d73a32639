from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from tests.discovery.test_kmeans import frozen_features
from tests.discovery.tiny import TRAINED, learned

from justright.discovery import joint
from justright.discovery.assigner import CategoryAssigner
from justright.discovery.joint import CALIBRATED_ON, join
from justright.discovery.methods import METHODS
from justright.discovery.predictions import UNCALIBRATED
from justright.utils.types import UNLABELED


def joined(name, split, backbone, bank, seeds=(0,), **options):
    methods = [learned(name, split, backbone, bank, seed=seed, **options) for seed in seeds]
    frozen, n = frozen_features(split, backbone, bank), len(split.labeled)
    return join(methods, frozen[:n], frozen[n:])


@pytest.mark.parametrize("name", ["kmeans", *TRAINED])
def test_every_method_has_a_joint_answer_and_keeps_its_own(name, split, backbone, bank):
    own = learned(name, split, backbone, bank)
    method = joined(name, split, backbone, bank)
    np.testing.assert_array_equal(method.own_labels_, own.labels_)
    assert method.calibrated_on_ == CALIBRATED_ON
    assert ((method.confidence_ > 0) & (method.confidence_ < 1)).all()
    assert method.labels_.max() < method.n_categories_


def test_several_seeds_give_one_answer(split, backbone, bank):
    method = joined("simgcd", split, backbone, bank, seeds=(0, 1, 2))
    assert len(method.labels_) == len(split.unlabeled)
    assert len(method.joint_.space.tuned) == 1, "new images are inputs by one of the trainings"


def test_saved_model_predicts_the_same(split, backbone, bank, tmp_path):
    method = joined("simgcd", split, backbone, bank)
    method.save(tmp_path)
    again = METHODS["simgcd"].load(tmp_path, backbone)
    before, after = (each.predict(split.unlabeled) for each in (method, again))
    np.testing.assert_array_equal(before.cluster, after.cluster)
    np.testing.assert_allclose(before.confidence, after.confidence, atol=0.05)  # anchors are kept in half precision


def test_without_labels_the_probabilities_of_the_method_are_not_flat(split, backbone, bank):
    method = joined("kmeans", split, backbone, bank, use_labels=False, n=4)
    assert method.joint_.temperature == joint.UNCALIBRATED_TEMPERATURE
    assert {category.kind for category in method.categories_} == {"discovered"}


def test_subsampled_labels_keep_every_class(monkeypatch):
    monkeypatch.setattr(joint, "MOST_ANCHORS", 20)
    labels = np.concatenate([np.zeros(100, dtype=np.int64), [1], np.full(50, 2), [3]])
    places = joint._anchor_rows(labels)
    assert set(labels[places].tolist()) == {0, 1, 2, 3}
    assert len(places) <= 24
    np.testing.assert_array_equal(joint._anchor_rows(labels[:20]), np.arange(20))


def test_given_labels_are_kept_with_confidence_1():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 6)).astype(np.float32)
    method = SimpleNamespace(
        class_rows_=np.arange(8),
        class_labels_=np.arange(8) % 2,
        class_features_=features[:8],
        features_=features[8:],
        is_given_=np.arange(32) < 3,
        labels_=np.where(np.arange(32) < 3, 1, rng.integers(4, size=32)),
        assigner_=CategoryAssigner.of_prototypes(features[:4]),
        calibrated_on_=UNCALIBRATED,
        n_categories_=4,
        config_=None,
        trainings=lambda config: ("simgcd",),
    )
    found = join([method], features[:8], features[8:])
    assert found.labels_[:3].tolist() == [1, 1, 1]
    assert found.confidence_[:3].tolist() == [1.0, 1.0, 1.0]
    assert UNLABELED not in found.labels_
