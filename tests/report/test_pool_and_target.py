from __future__ import annotations

import numpy as np
import pytest
from tests.report.html_checks import part, text_of

from justright.features.table import FeatureTable
from justright.report.drawing import to_svg
from justright.report.elements import Missing, environment
from justright.report.pool_and_target import MAPS, MOST_POINTS, TARGET, draw_map, feature_map, overview
from justright.runs.problem import OWN


def shown(run) -> str:
    return part("run", "data", overview(run) | {"map": Missing("no map"), "figure": None})


def test_images_and_classes_of_each_data_set_are_counted(finished):
    html = shown(finished)
    said = text_of(html)
    pool = finished.pool
    for dataset in pool.datasets:
        rows = [n for n, name in enumerate(pool.table["dataset"].to_pylist()) if name == dataset]
        n_classes = len({int(pool.labels[row]) for row in rows})
        side = "own classes" if dataset == OWN else "pool"
        assert f"{side}, labeled {dataset} {len(rows)} {n_classes}" in said
    assert f"target, unlabeled target {len(finished.target)}" in said
    assert html.count("<img") == 1 + len(pool.datasets)


def test_a_list_that_is_gone_is_said(own_run):
    (own_run.path / "pool.parquet").write_bytes(b"torn")
    assert "The list of labeled images cannot be read" in text_of(shown(own_run))


@pytest.fixture
def tables():
    """Two data sets far apart; the target lies near the second."""
    rng = np.random.default_rng(0)
    a, b = np.eye(6)[0] * 5, np.eye(6)[1] * 5
    pool = np.concatenate([a + rng.normal(size=(30, 6)) * 0.2, b + rng.normal(size=(30, 6)) * 0.2]).astype(np.float32)
    target = (b + rng.normal(size=(40, 6)) * 0.2).astype(np.float32)
    return FeatureTable.of(pool, dataset=["birds"] * 30 + ["$pets$ <x>"] * 30), FeatureTable.of(target)


@pytest.mark.parametrize("kind", MAPS)
def test_what_is_near_lies_near(tables, kind):
    found = feature_map(*tables, kind=kind)
    birds, pets, target = (found.points[found.source == source].mean(axis=0) for source in (0, 1, TARGET))
    assert np.linalg.norm(target - pets) < 0.5 * np.linalg.norm(target - birds)
    caption = str(environment().get_template("run_parts.html").module.map_caption(found))
    assert "mean little" in caption
    assert ("t-SNE" in caption) == (kind == "tsne")
    assert "60 of 60 labeled and 40 of 40 target images" in caption


def test_the_share_of_variance_is_that_of_a_plain_decomposition(tables):
    x = np.concatenate([table.features for table in tables]).astype(float)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    spread = np.linalg.svd(x - x.mean(axis=0), compute_uv=False) ** 2
    found = feature_map(*tables)
    assert found.explained == pytest.approx(spread[:2].sum() / spread.sum())
    assert np.abs(found.points).sum(axis=0) == pytest.approx(
        np.abs((x - x.mean(axis=0)) @ np.linalg.svd(x - x.mean(axis=0))[2][:2].T).sum(axis=0)
    )


def test_a_large_set_is_sampled_and_the_same_seed_draws_the_same():
    many = FeatureTable.of(np.random.default_rng(0).normal(size=(3 * MOST_POINTS, 3)).astype(np.float32))
    first, again, other = (feature_map(many, many, seed=seed) for seed in (0, 0, 1))
    assert len(first.source) == 2 * MOST_POINTS
    assert np.array_equal(first.points, again.points)
    assert not np.array_equal(first.points, other.points)
    assert (first.n_shown, first.n_images) == ((MOST_POINTS, MOST_POINTS), (len(many), len(many)))


def test_the_legend_names_the_sources_literally(tables):
    svg = to_svg(draw_map(feature_map(*tables)))
    assert "birds" in svg
    assert "$pets$ &lt;x&gt;" in svg
    assert "target, unlabeled" in svg


def test_one_dimension_is_a_line():
    flat = FeatureTable.of(np.array([[1.0], [-1.0], [2.0]], dtype=np.float32))
    assert feature_map(flat, flat).points.shape == (6, 2)
