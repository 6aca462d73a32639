from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from justright.discovery import hidden
from justright.discovery.hidden import hidden_class_shift

N_CLASSES, N_KNOWN, DIM = 10, 6, 16
OPTIONS = {"n_neighbors": 10, "neighbor_share": 0.8}


def problem(noise, n_known=N_KNOWN, per_class=6, seed=0):
    """Labeled images of known classes, then a target of all classes; rows of length 1."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(N_CLASSES, DIM))
    labels = np.repeat(np.arange(n_known), per_class)
    y = np.concatenate([labels, np.arange(200) % N_CLASSES])
    x = centers[y] + noise * rng.normal(size=(len(y), DIM))
    fixed = np.where(np.arange(len(y)) < len(labels), y, -1)
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32), fixed, len(labels), N_CLASSES


def test_classes_that_mix_lower_the_shift():
    """Neighbors agree as before, but the hidden classes are spread over all clusters."""
    x, fixed, n_labeled, n_categories = problem(0.3)
    apart = hidden_class_shift(x, fixed, n_labeled, n_categories, **OPTIONS)
    mixed = fixed.copy()
    mixed[:n_labeled] = np.random.default_rng(1).permutation(fixed[:n_labeled])
    assert hidden_class_shift(x, mixed, n_labeled, n_categories, **OPTIONS) < apart - 0.5


def test_there_is_no_shift_without_enough_known_classes():
    assert hidden_class_shift(*problem(0.5, n_known=3), **OPTIONS) is None
    assert hidden_class_shift(*problem(0.5, n_known=0), **OPTIONS) is None


def test_shift_shrinks_with_few_hidden_classes(monkeypatch):
    x, fixed, n_labeled, n_categories = problem(2.0)
    usual = hidden_class_shift(x, fixed, n_labeled, n_categories, **OPTIONS)
    monkeypatch.setattr(hidden, "SHRINK", 0.0)
    whole = hidden_class_shift(x, fixed, n_labeled, n_categories, **OPTIONS)
    assert usual == pytest.approx(whole * 3 / 9)
    assert usual != 0


def test_labels_of_hidden_classes_are_not_used(monkeypatch):
    """What is clustered holds no label of a hidden class."""
    seen = []
    cluster = hidden.constrained_ward
    monkeypatch.setattr(hidden, "constrained_ward", lambda x, labels, k: seen.append(labels) or cluster(x, labels, k))
    hidden_class_shift(*problem(0.5), **OPTIONS)
    assert len(seen) == hidden.N_DRAWS
    assert all(len(set(labels.tolist()) - {-1}) == N_KNOWN - N_KNOWN // 2 for labels in seen)
    assert len({labels.tobytes() for labels in seen}) > 1


def test_matching_agrees_with_all_permutations():
    rng = np.random.default_rng(3)
    cluster, label = rng.integers(-1, 4, size=40), rng.integers(4, size=40)
    every = [
        sum(c >= 0 and order[c] == y for c, y in zip(cluster, label, strict=True)) for order in permutations(range(4))
    ]
    assert hidden._n_matched(cluster, label, 4, 4) == max(every)
