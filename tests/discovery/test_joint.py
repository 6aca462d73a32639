from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from justright.discovery import ensemble, joint
from justright.discovery.evidence import NAMES, probability_right
from justright.discovery.joint import METHOD_WEIGHT, Inputs, JointAnswer, Space, joint_answer, probabilities

N_CLASSES, N_KNOWN, DIM = 12, 6, 24
CENTERS = np.random.default_rng(7).normal(size=(N_CLASSES, DIM))


def images(n, noise=0.8, seed=0, known=1.0, n_categories=N_CLASSES, n_classes=N_CLASSES, tuned_noise=None):
    """Classes, and the inputs of images; `known` is the share of images whose class the method predicts."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    noises = noise, noise if tuned_noise is None else tuned_noise
    frozen, tuned = (CENTERS[y] + each * rng.normal(size=(n, DIM)) for each in noises)
    scores = rng.normal(size=(n, n_categories))
    is_known_by_method = rng.random(n) < known
    scores[is_known_by_method, y[is_known_by_method] % n_categories] += 6
    return y, Inputs(frozen.astype(np.float32), [tuned.astype(np.float32)], [probabilities(scores, 1.0)])


def part(inputs, rows):
    return Inputs(
        inputs.frozen[rows], [each[rows] for each in inputs.tuned], [each[rows] for each in inputs.probability]
    )


def answered(n_categories=N_CLASSES, given=None, n=360, below=0.0, **options):
    labels, labeled = images(60, seed=1, n_classes=N_KNOWN, n_categories=n_categories)
    labels[:N_KNOWN], labels = np.arange(N_KNOWN), labels.copy()
    y, target = images(n, n_categories=n_categories, **options)
    given = np.full(n, -1) if given is None else given(y)
    answer, found = joint_answer(labeled, labels, lambda rows: part(target, rows), given, n_categories, 1.0, 0, below)
    return y, target, answer, found


def accuracy(y, category):
    from justright.evaluation import Counts, match_counts

    return float(np.mean(match_counts(Counts.of(y, category)).to_classes(category) == y))


def test_known_classes_keep_their_numbers_and_new_ones_are_found():
    y, _, _, found = answered()
    is_known = y < N_KNOWN
    assert np.mean(found.category[is_known] == y[is_known]) > 0.9
    assert accuracy(y, found.category) > 0.9
    assert found.evidence.shape == (360, len(NAMES))


def test_z_agrees_with_the_formula():
    _, inputs = images(50)
    space = Space.of(inputs)
    tuned, frozen, method = space.parts(inputs)
    for i in range(5):
        for got, features, view in ((tuned, inputs.tuned[0], space.tuned[0]), (frozen, inputs.frozen, space.frozen)):
            along = [float((features[i] - view.center) @ column) for column in view.directions.T]
            np.testing.assert_allclose(got[i], np.array(along) / np.linalg.norm(along), atol=1e-5)
        np.testing.assert_allclose(method[i], [METHOD_WEIGHT * p**0.5 for p in inputs.probability[0][i]], atol=1e-6)


def test_several_trainings_count_as_one():
    _, inputs = images(50)
    twice = Inputs(inputs.frozen, [*inputs.tuned, *inputs.tuned], [*inputs.probability, *inputs.probability])
    once, both = Space.of(inputs).parts(inputs), Space.of(twice).parts(twice)
    for one, two in zip(once, both, strict=True):
        np.testing.assert_allclose(one @ one.T, two @ two.T, atol=1e-4)


def test_labeled_image_keeps_its_class():
    def wrong(y):
        return np.where(np.arange(len(y)) < 9, (y + 1) % N_KNOWN, -1)  # whatever it looks like

    y, _, answer, found = answered(given=wrong)
    np.testing.assert_array_equal(found.category[:9], (y[:9] + 1) % N_KNOWN)
    n = answer.n_labeled
    np.testing.assert_array_equal(np.unique(answer.category[:n]), np.arange(N_KNOWN))


def test_new_images_follow_those_of_the_target():
    _, _, answer, _ = answered()
    y, more = images(200, seed=9)
    found = answer.predict(more.frozen, more.tuned[0], lambda rows: np.log(more.probability[0][: len(rows)]))
    assert accuracy(y, found.category) > 0.9
    none = answer.predict(more.frozen[:0], more.tuned[0][:0], lambda rows: np.zeros((0, N_CLASSES)))
    assert len(none.category) == 0


def test_dissimilar_images_are_neither():
    _, _, answer, _ = answered()
    _, more = images(200, seed=9)
    strange = Inputs(more.frozen[::-1] * 0 + np.random.default_rng(3).normal(size=more.frozen.shape), *_rest(more))
    known, unknown = answer.assign(more), answer.assign(strange)
    assert answer.is_neither(known.similarity, 0.05).mean() < 0.2
    assert answer.is_neither(unknown.similarity, 0.05).mean() > 0.8
    assert not answer.is_neither(unknown.similarity, 0.0).any()


def _rest(inputs):
    rng = np.random.default_rng(4)
    n = len(inputs.frozen)
    return [rng.normal(size=(n, DIM)).astype(np.float32)], [np.full((n, N_CLASSES), 1 / N_CLASSES, np.float32)]


def test_saved_answer_gives_the_same_categories():
    _, _, answer, _ = answered()
    _, more = images(200, seed=9)
    again, before = JointAnswer.of(answer.tensors(), answer.about()).assign(more), answer.assign(more)
    assert np.mean(again.category == before.category) > 0.99  # anchors are kept in half precision
    np.testing.assert_allclose(again.evidence, before.evidence, atol=0.05)


def test_inconsistent_arrays_are_rejected():
    _, _, answer, _ = answered()
    tensors = answer.tensors()
    damaged = {
        "category": tensors["category"] + 99,
        "members": tensors["members"][:, 1:],
        "inner": tensors["inner"][1:],
        "anchors": tensors["anchors"][:, :3],
        "tuned centroids": tensors["tuned centroids"][:, 1:],
        "similarity": tensors["similarity"][:0],
    }
    for name, changed in damaged.items():
        with pytest.raises(ValueError, match="do not belong together"):
            JointAnswer.of(tensors | {name: changed}, answer.about())
    for name, number in {
        "n_known": 99,
        "n_labeled": -1,
        "temperature": 0.0,
        "below": float("nan"),
        "k_width": float("inf"),
        "hidden": float("nan"),
    }.items():
        with pytest.raises(ValueError, match="do not belong together"):
            JointAnswer.of(tensors, answer.about() | {name: number})


def mean_confidence(**options):
    return float(probability_right(answered(**options)[3].evidence).mean())


def test_confidence_falls_where_k_is_wrong():
    right = mean_confidence(noise=1.2)
    assert mean_confidence(noise=1.2, n_categories=8, below=float(np.log(12 / 8))) < right
    assert mean_confidence(noise=1.2, n_categories=20) < right


def test_confidence_falls_where_training_was_cut_short():
    """The probabilities and the features of a short training carry less information."""
    short, whole = (answered(noise=1.2, **of) for of in ({"known": 0.2, "tuned_noise": 2.0}, {"known": 0.9}))
    assert accuracy(short[0], short[3].category) < accuracy(whole[0], whole[3].category)
    assert probability_right(short[3].evidence).mean() < probability_right(whole[3].evidence).mean()


def test_confidence_falls_where_images_are_hard_and_so_does_accuracy():
    easy, hard = answered(noise=0.6), answered(noise=2.0)
    confidence = [probability_right(found.evidence).mean() for _, _, _, found in (easy, hard)]
    assert confidence[0] > confidence[1]
    assert accuracy(easy[0], easy[3].category) > accuracy(hard[0], hard[3].category)


def test_large_targets_follow_anchors(monkeypatch):
    whole = answered()
    monkeypatch.setattr(joint, "MOST_ANCHORS", 200)
    monkeypatch.setattr(ensemble, "MOST_ROWS", 120)
    monkeypatch.setattr(joint, "BLOCK_ROWS", 50)
    y, _, answer, found = answered(given=lambda y: np.where(np.arange(len(y)) == 1, 2, -1))
    assert len(answer.anchors) == 60 + 200
    assert found.category[1] == 2
    assert accuracy(y, found.category) > accuracy(whole[0], whole[3].category) - 0.05


def test_without_labels_all_categories_are_new():
    _, nothing = images(0)
    y, target = images(300)
    _, found = joint_answer(nothing, y[:0], lambda rows: part(target, rows), np.full(300, -1), N_CLASSES, 1.0)
    assert accuracy(y, found.category) > 0.9
    assert (found.evidence[:, NAMES.index("is_new")] == 1).all()


def test_more_categories_than_images_leave_some_empty():
    _, nothing = images(0, n_categories=20)
    y, target = images(15, n_categories=20)
    answer, found = joint_answer(nothing, y[:0], lambda rows: part(target, rows), np.full(15, -1), 20, 1.0)
    assert found.category.max() < 20
    assert np.isfinite(found.evidence).all()
    assert np.isfinite(answer.assign(target).evidence).all()


def test_a_million_images_take_bounded_memory(monkeypatch):
    """What is held of each image is its category and evidence; all else is of anchors or of a block."""
    n, n_categories = 1_000_000, 4
    monkeypatch.setattr(joint, "MOST_ANCHORS", 300)
    monkeypatch.setattr(joint, "N_NEIGHBORS", 3)
    centers = CENTERS[:n_categories, :4].astype(np.float32)

    def target_at(rows):
        y = rows % n_categories
        noise = np.sin(rows[:, None] * np.arange(1, 5)).astype(np.float32) * 0.3
        features = centers[y] + noise
        return Inputs(features, [features], [np.eye(n_categories, dtype=np.float32)[y] * 0.7 + 0.075])

    rows = np.array([0, 4, 8, 12, 1, 5, 9, 13])
    labels, labeled = rows % n_categories, target_at(rows)
    given = np.full(n, -1)
    tracemalloc.start()
    _, found = joint_answer(labeled, labels, target_at, given, n_categories, 1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.category) == n
    assert accuracy(np.arange(n) % n_categories, found.category) > 0.95
    assert peak < 400 * n, f"{peak / n:.0f} bytes an image"
