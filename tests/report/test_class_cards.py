from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from tests.report.html_checks import part, text_of

from justright.report.class_cards import nearest_clusters, run_class_cards
from justright.report.elements import Missing
from justright.report.page_images import PageImages
from justright.runs.selection import Selection


def shown(run, saved, page_images) -> str:
    return part("run", "class_cards", run_class_cards(run, saved, page_images))


def test_the_nearest_cluster_agrees_with_plain_loops(finished):
    pool, target = finished.frozen
    found = nearest_clusters(finished, finished.selection)
    cluster = finished.predictions.cluster
    middles = {k: np.mean(target.features[cluster == k], axis=0) for k in set(cluster.tolist())}
    for label, (name, cosine) in found.items():
        own = np.mean(pool.features[pool.labels == label], axis=0)
        cosines = {k: own @ m / np.linalg.norm(own) / np.linalg.norm(m) for k, m in middles.items()}
        best = max(cosines, key=cosines.get)
        assert name == finished.predictions.categories[best].name
        assert cosine == pytest.approx(cosines[best], abs=1e-5)


def test_a_card_says_weight_reason_and_images_of_its_class(finished):
    html = shown(finished, finished.selection, PageImages(finished.pool, 10**7))
    rows = re.findall(r"<tr>(.*?)</tr>", html, flags=re.S)[1:]
    classes = sorted(finished.selection.classes.to_pylist(), key=lambda row: -row["weight"])
    assert len(rows) == len(classes)
    for row, text in zip(rows, classes, strict=True):
        assert f"<bdi>{text['class_name']}</bdi>" in row
        assert text["reason"] in row
        assert f'data-value="{text["weight"]:.7g}"' in row
        assert f'alt="images of {text["class_name"]}"' in row
    assert "kept in resamples" not in html


def test_stability_is_shown_if_computed(finished):
    saved = finished.selection
    n = len(saved.classes)
    table = saved.classes.append_column("kept_share", pa.array(np.linspace(0, 1, n)))
    table = table.append_column("weight_std", pa.array(np.full(n, 0.125)))
    html = shown(finished, Selection(saved.images, table, saved.about), PageImages(Missing("gone"), 0))
    assert "kept in resamples" in html
    assert "weight std" in html
    assert ">0.125<" in html


def test_without_features_the_rest_is_shown(own_run):
    own_run.path.joinpath("pool.features").rename(own_run.path / "elsewhere")
    text = text_of(shown(own_run, own_run.selection, PageImages(Missing("gone"), 0)))
    assert "The nearest cluster of each class is unknown: there are no frozen features" in text
    assert own_run.selection.classes["class_name"][0].as_py() in text
