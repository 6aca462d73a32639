from __future__ import annotations

import pytest

from justright.data import gcd_split, glyph_set, random_half
from justright.discovery.methods import METHODS
from justright.evaluation import evaluate
from justright.features.backbone import load_backbone


def test_every_method_is_found_by_its_name():
    assert list(METHODS) == ["kmeans", "gcd", "xcon", "simgcd", "mugcd"]
    assert all(method.name == name for name, method in METHODS.items())


def test_learning_beats_clusters_of_frozen_features(tmp_path):
    images = glyph_set(32, ["armenian"])
    images = images.of_classes(sorted(images.classes)[:16])
    split, truth = gcd_split(images, random_half(images.classes))
    y_true, is_old = truth.open_for_evaluation()
    backbone, accuracy = load_backbone("glyph_vit"), {}
    for name in ("kmeans", "gcd", "simgcd"):
        config = METHODS[name].config_class(n_init=3)
        if name != "kmeans":
            config = config.small(14).with_settings({"batch_size": 64, "views": 2, "learning_rate": 0.03})
        method = METHODS[name](16, backbone, config, bank=tmp_path).fit(split)
        accuracy[name] = evaluate(y_true, method.labels_, is_old, n_resamples=10).all
    assert accuracy["gcd"] > accuracy["kmeans"] + 0.1
    assert accuracy["simgcd"] > accuracy["kmeans"] + 0.1


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_what_it_is(name):
    assert METHODS[name].__doc__
    assert METHODS[name].config_class.__doc__
