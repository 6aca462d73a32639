from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from justright.evaluation import Counts, Errors, break_down, evaluate, matched_confusion
from justright.utils.types import UNLABELED

# Classes 0 and 1 are old, 2 and 3 new; cluster k stands for class k, as ten images each make sure.
ANCHORS = [(c, c) for c in range(4) for _ in range(10)]


def broken_down(*extra: tuple[int, int]) -> Errors:
    y_true, y_pred = (np.array(column) for column in zip(*ANCHORS, *extra, strict=True))
    return break_down(y_true, y_pred, y_true < 2)


@pytest.mark.parametrize(
    ("image", "kind"),
    [
        ((2, 0), "new_as_old"),
        ((2, 3), "new_as_new"),
        ((2, 9), "new_as_new"),  # a cluster without a class counts as new
        ((0, 3), "old_as_new"),
        ((0, 9), "old_as_new"),
        ((0, 1), "old_as_old"),
    ],
)
def test_each_kind_of_error(image, kind):
    errors = broken_down(image, image)
    assert errors.by_kind() == {k: 2 * (k == kind) for k in errors.by_kind()}
    assert errors.n_images.sum() - errors.n_right.sum() == 2


def test_a_class_in_two_clusters_is_split():
    errors = broken_down(*[(3, 9)] * 4)
    assert errors.by_cause() == {"split": 4, "merged": 0, "stray": 0}


def test_a_class_inside_the_cluster_of_another_is_merged():
    errors = broken_down(*[(5, 1)] * 4)
    assert errors.by_cause() == {"split": 0, "merged": 4, "stray": 0}
    assert errors.cluster.tolist() == [0, 1, 2, 3, UNLABELED]
    assert errors.by_kind()["new_as_old"] == 4


def test_single_images_elsewhere_are_strays():
    assert broken_down((0, 1), (3, 2)).by_cause() == {"split": 0, "merged": 0, "stray": 2}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), min_size=1, max_size=80), st.permutations(range(8)))
def test_every_error_has_one_kind_and_one_cause(images, names):
    y_true, y_pred = (np.array(column) for column in zip(*images, strict=True))
    errors = break_down(y_true, y_pred, y_true < 3)
    n_wrong = int((errors.n_images - errors.n_right).sum())
    assert sum(errors.by_kind().values()) == sum(errors.by_cause().values()) == n_wrong
    np.testing.assert_array_equal(errors.n_images, errors.n_right + errors.n_as_old + errors.n_as_new)
    np.testing.assert_array_equal(errors.n_images - errors.n_right, errors.n_split + errors.n_merged + errors.n_stray)
    assert 1 - n_wrong / len(y_true) == pytest.approx(evaluate(y_true, y_pred, y_true < 3, with_intervals=False).all)
    renamed = break_down(y_true, np.array(names)[y_pred], y_true < 3)
    assert renamed.to_dict() == errors.to_dict()


def test_confusion_is_ordered_by_the_matching():
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 6, 400) * 2
    y_pred = np.where(rng.random(400) < 0.3, rng.integers(0, 9, 400), (y_true + 3) % 7)
    old_classes = np.array([2, 8, 4])
    confusion = matched_confusion(Counts.of(y_true, y_pred), old_classes)
    errors = break_down(y_true, y_pred, np.isin(y_true, old_classes))
    assert confusion.classes.tolist() == [2, 4, 8, 0, 6, 10]
    assert confusion.n_old == 3
    assert confusion.n.sum() == 400
    right = dict(zip(errors.classes.tolist(), errors.n_right.tolist(), strict=True))
    assert np.diag(confusion.n).tolist() == [right[c] for c in confusion.classes.tolist()]
    rest = confusion.n[:, 6:].sum(axis=0)
    assert (np.diff(rest) <= 0).all()
    for row, c in enumerate(confusion.classes.tolist()):
        for column, k in enumerate(confusion.clusters.tolist()):
            assert confusion.n[row, column] == np.sum((y_true == c) & (y_pred == k))


def test_a_class_without_a_cluster_has_an_empty_column():
    confusion = matched_confusion(Counts.of(np.array([0, 0, 1]), np.array([5, 5, 5])), np.array([0]))
    assert confusion.clusters.tolist() == [5, UNLABELED]
    assert confusion.n.tolist() == [[2, 0], [1, 0]]


def test_importing_evaluation_is_light():
    heavy = ("torch", "matplotlib", "sklearn", "scipy")
    code = f"import sys, justright.evaluation; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
