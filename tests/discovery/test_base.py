from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from tests.conftest import picture
from tests.discovery.tiny import N_CATEGORIES, backbone_of_noise, config_of, drawn_images, drawn_split, learned

from justright.data.folder import open_folder
from justright.data.splits import Split
from justright.discovery.methods import METHODS
from justright.features.bank import open_views
from justright.utils.errors import DataError, DegenerateError


def one_epoch(name):
    return {} if name == "kmeans" else {"n_epochs": 1}


@pytest.fixture(scope="module", params=list(METHODS))
def method(request, uninterrupted):
    return uninterrupted(request.param, **one_epoch(request.param)).method


def test_known_classes_come_first_and_every_image_has_a_category(method, split):
    assert [category.name for category in method.categories_] == ["0", "1", "2", "new-001", "new-002"]
    assert [category.kind for category in method.categories_] == ["known"] * 3 + ["discovered"] * 2
    assert method.known_labels_ == (0, 1, 2)
    assert method.labels_.shape == (len(split.unlabeled),)
    assert set(method.labels_.tolist()) <= set(range(N_CATEGORIES))
    assert method.features_.shape == (len(split.unlabeled), method.backbone.dim)
    assert ((method.confidence_ >= 0) & (method.confidence_ <= 1)).all()
    assert method.calibrated_on_.endswith("hence too sure")


def test_predictions_match_fitted_labels(method, split):
    found = method.predictions(split.unlabeled)
    assert found.ids == split.unlabeled.ids
    assert found.cluster.tolist() == method.labels_.tolist()
    assert found.categories == method.categories_
    assert not found.is_neither.any()


def test_predicting_the_target_again_agrees(method, split):
    found = method.predict(split.unlabeled, neither=0.0)
    assert found.ids == split.unlabeled.ids
    agrees = found.cluster == method.labels_
    assert agrees.all() if method.name in ("simgcd", "mugcd") else agrees.mean() > 0.85
    np.testing.assert_allclose(found.confidence[agrees], method.confidence_[agrees], rtol=1e-3)
    assert (found.confidence > 0).all()


def test_saved_model_predicts_the_same_on_a_fresh_backbone(method, tmp_path):
    others = drawn_images([0, 1, 2, 3, 4, 4], "others", seed=5)
    before = method.predict(others, neither=0.1)
    method.save(tmp_path)
    loaded = METHODS[method.name].load(tmp_path, backbone_of_noise())
    after = loaded.predict(others, neither=0.1)
    assert after.cluster.tolist() == before.cluster.tolist()
    assert after.confidence.tolist() == before.confidence.tolist()
    assert after.is_neither.tolist() == before.is_neither.tolist()
    assert loaded.categories_ == method.categories_
    assert loaded.known_labels_ == method.known_labels_
    assert loaded.config_ == method.config_
    assert loaded.calibrated_on_ == method.calibrated_on_
    assert (loaded.n_categories, loaded.seed) == (method.n_categories, method.seed)


def test_fit_does_not_change_the_given_backbone(method):
    assert method.backbone.fingerprint == backbone_of_noise().fingerprint
    assert method.backbone_.prefix_fingerprint == method.backbone.prefix_fingerprint


def test_unreadable_images_are_skipped(method, tmp_path):
    for number in range(4):
        picture(number, (20, 20)).save(tmp_path / f"{number}.png")
    (tmp_path / "2.png").write_bytes(b"no image")
    found = method.predict(open_folder(tmp_path), max_bad=0.5)
    assert found.index["path"].to_pylist() == ["0.png", "1.png", "3.png"]
    assert len(found.cluster) == len(found.confidence) == len(found.is_neither) == 3


def test_load_rejects_another_method(method, tmp_path):
    method.save(tmp_path)
    other = "gcd" if method.name != "gcd" else "simgcd"
    with pytest.raises(DataError, match=f"holds a model of {method.name}"):
        METHODS[other].load(tmp_path, backbone_of_noise())


def test_outliers_fit_no_category(split, backbone, bank):
    method = learned("kmeans", split, backbone, bank)
    best = method.assigner_.assign(method.features_)[2]
    assert method.assigner_.is_neither(best - 10, 0.01).all()
    assert method.predict(split.unlabeled, neither=0.2).is_neither.mean() == pytest.approx(0.2, abs=0.1)


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_predict_rejects_an_invalid_share_of_no_category(share, split, uninterrupted):
    with pytest.raises(DataError, match="below 1"):
        uninterrupted("kmeans").method.predict(split.unlabeled, neither=share)


def test_clusters_do_not_depend_on_the_order_of_labeled_images(split, backbone, bank):
    order = np.random.default_rng(0).permutation(len(split.labeled))
    shuffled = Split(split.labeled.take(order), split.unlabeled, split.classes)
    first, second = (learned("kmeans", each, backbone, bank) for each in (split, shuffled))
    assert first.labels_.tolist() == second.labels_.tolist()
    assert first.categories_ == second.categories_


@pytest.mark.parametrize("name", ["kmeans", "simgcd"])
def test_labels_may_have_gaps(name, backbone, bank):
    split = drawn_split(old=(5, 40, 17), new=(3, 99))
    method = learned(name, split, backbone, bank, **one_epoch(name))
    assert method.known_labels_ == (5, 17, 40)
    assert [category.name for category in method.categories_[:3]] == ["5", "17", "40"]


def test_fewer_categories_than_known_classes_are_rejected(split, backbone, bank):
    with pytest.raises(DegenerateError, match="2 categories for 3 known classes"):
        learned("simgcd", split, backbone, bank, n=2)
    with pytest.raises(DegenerateError, match="0 categories for 0 known classes"):
        learned("simgcd", replace(split, labeled=split.labeled.take([])), backbone, bank, n=0)


@pytest.mark.parametrize("wrong", [{"n_categories": 5.5}, {"n_categories": True}, {"seed": 1.5}], ids=str)
def test_n_categories_and_seed_are_whole_numbers(wrong, split, backbone):
    with pytest.raises(DataError, match="Expected: a whole number"):
        METHODS["simgcd"](5, backbone).set_params(**wrong).fit(split)


def test_config_of_another_method_is_rejected(split, backbone):
    with pytest.raises(DataError, match=r"(?s)a GCDConfig for simgcd.*SimGCDConfig"):
        METHODS["simgcd"](5, backbone, config_of("gcd")).fit(split)


def test_without_a_config_the_published_one_is_used(split, backbone, bank):
    assert METHODS["kmeans"](5, backbone, bank=bank).fit(split).config_ == METHODS["kmeans"].config_class()


@pytest.mark.parametrize("name", list(METHODS))
def test_methods_follow_the_scikit_learn_contract(name, split, backbone, bank):
    method = METHODS[name](N_CATEGORIES, backbone, config_of(name, **one_epoch(name)), seed=3, bank=bank)
    params = method.get_params()
    assert params.keys() == set(inspect.signature(METHODS[name].__init__).parameters) - {"self"}
    assert {key: getattr(method, key) for key in params} == params
    assert clone(method).get_params() == params
    assert vars(clone(method.fit(split))) == params, "a clone has parameters and nothing learned"
    assert method.get_params() == params
    assert all(method.get_params()[key] is value for key, value in params.items()), "fit changes no parameter"
    again = clone(method).set_params(seed=4)
    assert (again.seed, method.seed) == (4, 3)


def test_held_out_images_calibrate(split, backbone, bank):
    sure = learned("kmeans", split, backbone, bank)
    sound = learned("kmeans", split, backbone, bank, held_out_share=0.5)
    assert sound.calibrated_on_ == "held-out labeled images"
    assert sound.assigner_.temperature != sure.assigner_.temperature


def test_second_fit_starts_from_scratch(split, backbone, bank):
    method = METHODS["simgcd"](5, backbone, config_of("simgcd", n_epochs=1), bank=bank)
    first = method.fit(split).features_
    np.testing.assert_array_equal(method.fit(split).features_, first)


def test_views_follow_the_seed_only_if_configured(split, backbone, bank, monkeypatch):
    opened = []  # whether the views are plain, and their seed

    def recorded(*args, transform, seed, **options):
        opened.append((transform == "plain", seed))
        return open_views(*args, transform=transform, seed=seed, **options)

    monkeypatch.setattr("justright.discovery.base.open_views", recorded)
    for by_seed in (False, True):
        config = config_of("simgcd", n_epochs=1, views_by_seed=by_seed)
        METHODS["simgcd"](N_CATEGORIES, backbone, config, seed=3, bank=bank).fit(split)
    assert opened == [(False, 0), (True, 0), (False, 3), (True, 0)]
    opened.clear()
    first_alone = config_of("mugcd", n_epochs=1, stage1={"views_by_seed": True})
    METHODS["mugcd"](N_CATEGORIES, backbone, first_alone, seed=3, bank=bank).fit(split)
    assert opened == [(False, 3), (True, 0), (False, 0), (False, 0)]
