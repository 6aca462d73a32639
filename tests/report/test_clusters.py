from __future__ import annotations

import re

import numpy as np
import pytest
from tests.report.html_checks import part, text_of

from justright.report.clusters import cluster_cards, look_at_clusters
from justright.report.elements import Missing
from justright.report.page_images import PageImages
from justright.report.review_part import review_of


def shown(run, page_images) -> str:
    return part("run", "clusters", review_of(run) | cluster_cards(run, page_images))


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


def test_every_cluster_has_a_card_with_its_numbers_and_sheets(finished):
    html = shown(finished, PageImages(finished.target, 10**7))
    rows = {}
    for row in re.findall(r"<tr>(<td.*?)</tr>", html, flags=re.S):
        rows[re.findall(r"<bdi>(.*?)</bdi>", row)[0]] = row
    views = look_at_clusters(finished.predictions, finished.tuned)
    assert rows.keys() == {view.category.name for view in views}
    for view in views:
        row = rows[view.category.name]
        assert f">{len(view.rows) + view.n_neither}<" in row
        assert f">{100 * view.confidence:.1f}<" in row
        assert f"<bdi>{view.nearest}</bdi>" in row
        assert f'alt="central images of {view.category.name}"' in row
        assert (f'alt="outliers of {view.category.name}"' in row) == (len(view.rows) >= 4)
    assert "3 images look like none of them" in text_of(html)
    assert "after training" in text_of(html)


def test_without_tuned_features_the_frozen_ones_serve(own_run):
    (own_run.path / "tuned.npy").unlink()
    said = text_of(shown(own_run, PageImages(Missing("gone"), 0)))
    assert "before training" in said
    assert "No images to show: gone." in said
    own_run.path.joinpath("target.features").rename(own_run.path / "elsewhere")
    del own_run.__dict__["frozen"]
    assert "images go by confidence" in text_of(shown(own_run, PageImages(Missing("gone"), 0)))
