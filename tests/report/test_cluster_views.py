from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from justright.discovery.predictions import Predictions, category_names
from justright.report.clusters import describe_clusters


def unit(x):
    return x / np.linalg.norm(x)


def test_agrees_with_plain_loops(finished):
    predictions, tuned = finished.predictions, np.array(finished.tuned)
    centroid = {k: tuned[predictions.cluster == k].mean(axis=0) for k in set(predictions.cluster.tolist())}
    views = {view.category.name: view for view in describe_clusters(predictions, finished.tuned)}
    assert len(views) == len(centroid)
    for k, own in centroid.items():
        view = views[predictions.categories[k].name]
        rows = [r for r in range(len(tuned)) if predictions.cluster[r] == k]
        assert view.purity == pytest.approx(np.mean([predictions.confidence[r] for r in rows]), rel=1e-5)
        assert view.n_neither == sum(predictions.is_neither[r] for r in rows)
        central = sorted((r for r in rows if not predictions.is_neither[r]), key=lambda r: -unit(tuned[r]) @ unit(own))
        assert view.rows.tolist() == central
        for kind, found in (("known", view.near_known), ("discovered", view.near_cluster)):
            others = {
                o: unit(c) @ unit(own) for o, c in centroid.items() if o != k and predictions.categories[o].kind == kind
            }
            nearest = max(others, key=others.get)
            assert found == (predictions.categories[nearest].name, pytest.approx(others[nearest], rel=1e-5))
        to = {o: np.mean([unit(tuned[r]) @ unit(c) for r in rows]) for o, c in centroid.items()}
        assert view.apart == pytest.approx(to.pop(k) - max(to.values()), abs=1e-5)


def test_the_ends_of_a_cluster_do_not_overlap(finished):
    for view in describe_clusters(finished.predictions, finished.tuned):
        middle, edge = view.ends(18, 4)
        assert not set(middle.tolist()) & set(edge.tolist())
        assert len(edge) <= len(view.rows) // 4
        assert len(middle) + len(edge) == min(len(view.rows), 18 + len(edge))
        if len(edge):
            assert edge[0] == view.rows[-1], "the farthest first"


def test_rows_without_features_sort_by_confidence(finished):
    for view in describe_clusters(finished.predictions, None):
        assert np.all(np.diff(finished.predictions.confidence[view.rows]) <= 0)
        assert (view.near_known, view.near_cluster, view.apart) == (None, None, None)


def test_zero_features_are_accepted(finished):
    views = describe_clusters(finished.predictions, np.zeros((len(finished.predictions), 3), dtype=np.float32))
    assert sum(len(view.rows) + view.n_neither for view in views) == len(finished.predictions)


def test_large_and_uncertain_clusters_come_first():
    """Four images of which one is wrong, two of which one is, and five that are sure."""
    cluster = np.array([0] * 4 + [1] * 2 + [2] * 5)
    confidence = np.array([0.7] * 4 + [0.5] * 2 + [0.99] * 5, dtype=np.float32)
    index = pa.table({name: [str(n) for n in range(11)] for name in ("id", "dataset", "path")})
    predictions = Predictions(index, cluster, confidence, np.zeros(11, bool), category_names([], 3))
    views = describe_clusters(predictions, None)
    assert [view.number for view in views] == [0, 1, 2]
    assert [view.n_likely_wrong for view in views] == pytest.approx([1.2, 1.0, 0.05], rel=1e-4)


def test_labeled_images_do_not_make_a_cluster_purer():
    index = pa.table({name: ["a", "b", "c"] for name in ("id", "dataset", "path")})
    sure, nothing = np.array([1.0, 0.4, 1.0], np.float32), np.zeros(3, bool)
    given = np.array([True, False, True])
    found = Predictions(index, np.array([0, 0, 1]), sure, nothing, category_names(["cat", "dog"], 2), given)
    views = describe_clusters(found, None)
    assert [view.purity for view in views] == [pytest.approx(0.4), None]
    assert [view.n_likely_wrong for view in views] == [pytest.approx(0.6), 0]


def test_single_cluster_has_no_neighbors(finished):
    found = finished.predictions
    one = Predictions(found.index, np.zeros_like(found.cluster), found.confidence, found.is_neither, found.categories)
    (view,) = describe_clusters(one, finished.tuned)
    assert (view.near_known, view.near_cluster, view.apart) == (None, None, None)
