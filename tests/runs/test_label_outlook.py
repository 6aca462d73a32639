from __future__ import annotations

import numpy as np

from justright.features.table import FeatureTable
from justright.runs.feature_pool import merge_tables
from justright.runs.label_outlook import LabelOutlook, label_outlook
from justright.selection import LabelEffect


def pool_and_target():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(8, 6))
    labels = np.repeat(np.arange(6), 8)
    pool = merge_tables([FeatureTable.of(centers[labels] + rng.normal(0, 0.2, (48, 6)), label=labels)])
    return pool, FeatureTable.of(centers[np.repeat(np.arange(4, 8), 18)] + rng.normal(0, 0.2, (72, 6)))


def test_a_number_of_clusters_that_nobody_said_is_called_a_guess():
    pool, target = pool_and_target()
    guessed = label_outlook(pool, target, np.ones(48))
    assert (guessed.n_clusters, guessed.is_guess) == (6, True)  # sqrt(72 / 2)
    assert "a guess" in guessed.sentence()
    given = label_outlook(pool, target, np.ones(48), n_clusters=4)
    assert "a guess" not in given.sentence()
    assert given.to_json()["says"] == given.sentence()


def test_equal_weights_are_the_whole_pool(monkeypatch):
    pool, target = pool_and_target()
    outlook = label_outlook(pool, target, np.full(48, 2.0), n_clusters=4)
    assert outlook.selected == outlook.everything
    assert "whole pool" not in outlook.sentence()
    monkeypatch.setattr("justright.runs.label_outlook.MAX_IMAGES", 40)
    some = label_outlook(pool, target, (pool.labels < 3).astype(float), n_clusters=4)
    assert some.selected != some.everything
    assert "whole pool" in some.sentence()


def test_one_class_has_nothing_to_teach():
    pool, target = pool_and_target()
    outlook = label_outlook(pool, target, (pool.labels == 0).astype(float))
    assert outlook.selected is None
    assert "not computed, 1 class" in outlook.sentence()


def test_the_sign_is_put_into_words():
    for with_labels, word in ((1.2, "help"), (0.8, "hurt"), (1.001, "matter little")):
        effect = LabelEffect(1.0, with_labels)
        assert f"expect them to {word}" in LabelOutlook(effect, effect, 5, False).sentence()
