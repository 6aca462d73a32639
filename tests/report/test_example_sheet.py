from __future__ import annotations

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from justright.data import open_images
from justright.features.table import FeatureTable
from justright.report.example_sheet import ClassExamples, ExampleSheet, draw_sheet, example_sheet
from justright.runs.feature_pool import merge_tables
from justright.runs.selection_result import SelectionResult
from justright.selection import BetaSelector, UniformSelector, row_shards

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def result(make_tree, tmp_path):
    """A selection from five classes of images on disk."""
    images = open_images(make_tree(dict.fromkeys("abcde", 5), "pets"))
    rng = np.random.default_rng(0)
    features = (rng.normal(size=(5, 8))[images.labels] + 0.1 * rng.normal(size=(25, 8)) + 0.5).astype(np.float32)
    columns = {name: images.table[name] for name in ("path", "dataset", "class_name", "source")}
    store = FeatureTable.of(features, label=images.labels, id=images.with_ids().ids, **columns).write(
        tmp_path / "pool.features"
    )
    pool = merge_tables([store])
    selector = BetaSelector(domain="affine").fit_stream(pool, row_shards(features[:5]))
    return SelectionResult.of("beta", selector, pool)


def test_images_are_those_of_the_heaviest_and_the_lightest_classes(result):
    sheet = example_sheet(result, n_classes=2, n_images=3)
    assert sheet.problem == ""
    weight = dict(zip(result.pool.class_names, result.selector.class_weight_, strict=True))
    reason = dict(zip(result.pool.class_names, result.selector.reason_, strict=True))
    ranked = sorted(weight, key=weight.get, reverse=True)
    most, least = sheet.parts.values()
    assert [each.class_name for each in (*most, *least)] == [*ranked[:2], *ranked[-2:]]
    for each in (*most, *least):
        assert each.reason == reason[each.class_name]
        assert len(each.images) == len(set(each.images)) == 3
        assert all(uri.startswith("data:image/jpeg;base64,") for uri in each.images)


def test_of_equal_weights_none_is_the_least(result):
    selector = UniformSelector().fit_stream(result.pool, row_shards(result.pool.tables[0].features))
    equal = SelectionResult.of("none", selector, result.pool)
    assert list(example_sheet(equal).parts) == ["Weigh most"]


def test_images_that_cannot_be_found_are_told(weighed):
    sheet = example_sheet(weighed("none", UniformSelector()))
    assert sheet.parts == {}
    assert "does not say where its images are" in sheet.problem


def test_the_sheet_is_an_svg_document_with_every_name_and_image_inside():
    most = tuple(ClassExamples(f"<{n}> & co", "near", ("data:,a", "data:,b")) for n in range(3))
    root = ET.fromstring(draw_sheet(ExampleSheet({"Weigh most": most, "Weigh least": most[:1]})))
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert texts[:2] == ["Weigh most", "<0> & co  ·  near"]
    assert texts[4:] == ["Weigh least", "<0> & co  ·  near"]
    assert len(list(root.iter(f"{SVG}image"))) == 8
    heights = [float(each.get("y")) for each in root.iter(f"{SVG}text")]
    assert heights == sorted(heights)
    assert heights[-1] + 88 < float(root.get("height"))
