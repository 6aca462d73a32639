from __future__ import annotations

import numpy as np
import pytest

from justright.report.clusters import look_at_clusters


def unit(x):
    return x / np.linalg.norm(x)


def test_agrees_with_plain_loops(finished):
    predictions, tuned = finished.predictions, np.array(finished.tuned)
    centroid = {k: tuned[predictions.cluster == k].mean(axis=0) for k in set(predictions.cluster.tolist())}
    views = {view.category.name: view for view in look_at_clusters(predictions, finished.tuned)}
    assert len(views) == len(centroid)
    for k, own in centroid.items():
        view = views[predictions.categories[k].name]
        rows = [r for r in range(len(tuned)) if predictions.cluster[r] == k]
        assert view.confidence == pytest.approx(np.mean([predictions.confidence[r] for r in rows]), rel=1e-5)
        assert view.n_neither == sum(predictions.is_neither[r] for r in rows)
        central = sorted((r for r in rows if not predictions.is_neither[r]), key=lambda r: -unit(tuned[r]) @ unit(own))
        assert view.rows.tolist() == central
        others = {
            o: unit(c) @ unit(own) for o, c in centroid.items() if o != k and predictions.categories[o].kind == "known"
        }
        nearest = max(others, key=others.get)
        assert view.nearest == predictions.categories[nearest].name
        assert view.similarity == pytest.approx(others[nearest], rel=1e-5)


def test_the_ends_of_a_cluster_do_not_overlap(finished):
    for view in look_at_clusters(finished.predictions, finished.tuned):
        middle, edge = view.ends(18, 4)
        assert not set(middle.tolist()) & set(edge.tolist())
        assert len(edge) <= len(view.rows) // 4
        assert len(middle) + len(edge) == min(len(view.rows), 18 + len(edge))
        if len(edge):
            assert edge[0] == view.rows[-1], "the farthest first"


def test_without_features_rows_go_by_confidence(finished):
    for view in look_at_clusters(finished.predictions, None):
        assert np.all(np.diff(finished.predictions.confidence[view.rows]) <= 0)
        assert view.nearest is None


def test_zeros_are_no_error(finished):
    views = look_at_clusters(finished.predictions, np.zeros((len(finished.predictions), 3), dtype=np.float32))
    assert sum(len(view.rows) + view.n_neither for view in views) == len(finished.predictions)
