from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image, ImageOps

from justright.features.table import FeatureTable
from justright.report import feature_map as module
from justright.report.drawing import to_svg
from justright.report.elements import Missing, environment
from justright.report.feature_map import COLUMNS, N_TILES, PIXELS, TARGET, draw_map, feature_map, map_tiles
from justright.report.page_images import GAP


@pytest.fixture(autouse=True)
def layout(monkeypatch):
    monkeypatch.setattr(module, "_tsne", module._tsne.__wrapped__)


@pytest.fixture
def tables():
    """Two data sets far apart; the target lies near the second."""
    rng = np.random.default_rng(0)
    a, b = np.eye(6)[0] * 5, np.eye(6)[1] * 5
    pool = np.concatenate([a + rng.normal(size=(30, 6)) * 0.2, b + rng.normal(size=(30, 6)) * 0.2]).astype(np.float32)
    target = (b + rng.normal(size=(40, 6)) * 0.2).astype(np.float32)
    return FeatureTable.of(pool, dataset=["birds"] * 30 + ["$pets$ <x>"] * 30), FeatureTable.of(target)


def test_map_keeps_neighbors_together(tables):
    found = feature_map(*tables)
    birds, pets, target = (found.points[found.source == source].mean(axis=0) for source in (0, 1, TARGET))
    assert np.linalg.norm(target - pets) < 0.5 * np.linalg.norm(target - birds)
    caption = str(environment().get_template("run_parts.html").module.map_caption(found))
    assert "mean little" in caption
    assert "60 of 60 labeled and 40 of 40 target images" in caption


def test_map_separates_groups_that_pca_overlaps():
    """PCA to two dimensions mixes eight groups in eight directions."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(8), 12)
    x = (4 * np.eye(8)[group] + rng.normal(0, 0.3, (96, 8))).astype(np.float32)
    found = feature_map(FeatureTable.of(x[::2], dataset=["a"] * 48), FeatureTable.of(x[1::2]))
    of_point = np.concatenate([group[::2], group[1::2]])
    distance = np.linalg.norm(found.points[:, None] - found.points[None], axis=-1)
    np.fill_diagonal(distance, np.inf)
    assert np.mean(of_point[distance.argmin(axis=1)] == of_point) == 1


def test_sample_depends_on_the_seed_alone(monkeypatch):
    monkeypatch.setattr("justright.report.feature_map.MOST_POINTS", 40)
    many = FeatureTable.of(np.random.default_rng(0).normal(size=(120, 3)).astype(np.float32))
    first, again, other = (feature_map(many, many, seed=seed) for seed in (0, 0, 1))
    assert len(first.source) == 80
    assert np.array_equal(first.points, again.points)
    assert not np.array_equal(first.points, other.points)
    assert (first.n_shown, first.n_images) == ((40, 40), (120, 120))


def test_the_legend_names_the_sources_literally(tables):
    svg = to_svg(draw_map(feature_map(*tables)))
    assert "birds" in svg
    assert "$pets$ &lt;x&gt;" in svg
    assert ">target<" in svg


def test_features_of_one_dimension_are_accepted():
    flat = FeatureTable.of(np.array([[1.0], [-1.0], [2.0]], dtype=np.float32))
    assert feature_map(flat, flat).points.shape == (6, 2)
    assert feature_map(flat, FeatureTable.of(flat.features[:1])).points.shape == (4, 2)


def test_equal_features_are_accepted():
    same = FeatureTable.of(np.ones((8, 3), dtype=np.float32))
    assert np.isfinite(feature_map(same, same).points).all()


def test_each_tile_is_the_image_of_its_mark(finished):
    found = feature_map(*finished.frozen)
    figure = draw_map(found)
    (axes,) = figure.axes
    sheets = map_tiles(found, figure, (finished.pool, finished.target))
    spots = [spot for _, texts in sheets for spot in texts.split(" ")]
    assert len(spots) == len(found.points)
    for place in (0, found.n_shown[0] - 1, found.n_shown[0], len(spots) - 1):
        x, y = axes.transData.transform(found.points[place]) / figure.bbox.size
        assert spots[place] == f"{round(1000 * x)},{round(1000 * (1 - y))}"
    n_pool_sheets = -(-found.n_shown[0] // N_TILES)
    picture, _ = sheets[n_pool_sheets]  # the first of the target; its seventh tile: second row, second place
    sheet = Image.open(io.BytesIO(base64.b64decode(picture.uri.partition(",")[2]))).convert("RGB")
    step = PIXELS + GAP
    tile = np.asarray(sheet.crop((step, step, step + PIXELS, step + PIXELS)), float)
    images = [finished.target.image(int(row)) for row in found.rows[found.n_shown[0] :][: 2 * COLUMNS]]
    off = [
        np.abs(np.asarray(ImageOps.fit(image.convert("RGB"), (PIXELS, PIXELS)), float) - tile).mean()
        for image in images
    ]
    assert int(np.argmin(off)) == COLUMNS + 1


def test_missing_images_have_no_tile(finished):
    found = feature_map(*finished.frozen)
    figure = draw_map(found)
    assert map_tiles(found, figure, (Missing("gone"), Missing("gone"))) == []
    assert map_tiles(found, figure, (finished.target, Missing("gone"))) == [], "a list of other images"
