"""A selector written outside the package works through both commands, with its own options, columns and reasons."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from tests.cli.conftest import invoke
from tests.contributing_examples import example

from justright.features.table import FeatureTable
from justright.runs.run_folder import RunFolder
from justright.runs.selection import load_selection
from justright.selection import SELECTORS


@pytest.fixture
def largest():
    yield example("selector").LargestSelector
    del SELECTORS["largest"]


def call(*words):
    return invoke(words).stdout


@pytest.fixture
def stores(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), [4, 6, 5, 7])
    FeatureTable.of(1 + rng.normal(size=(22, 8)), label=labels, dataset=["birds"] * 22).write(tmp_path / "birds")
    FeatureTable.of(1 + rng.normal(size=(30, 8))).write(tmp_path / "target")
    return tmp_path


def test_select_writes_weights_reasons_figure_and_page(stores, largest):
    words = ["select", stores / "birds", "--target", stores / "target", "--selector", "largest", "--n-largest", 2]
    files = ["--out", stores / "w.parquet", "--figures", stores / "figures", "--html", stores / "page.html"]
    message = call(*words, *files, "--stability", 2)
    assert "Kept by largest" in message
    assert "least distance" in message
    saved = load_selection(stores / "w.parquet")
    assert saved.classes["weight"].to_pylist() == [0.0, 1.0, 0.0, 1.0]
    assert saved.classes["reason"].to_pylist()[:2] == ["too small: 4 images", "kept: 6 images"]
    assert saved.classes.column_names[6:] == ["distance", "place", "kept_share", "weight_std"]
    assert saved.about["params"] == {"n_largest": 2}
    assert ET.parse(stores / "figures" / "ranked.svg").getroot().tag.endswith("svg")
    assert "too small: 4 images" in (stores / "page.html").read_text(encoding="utf-8")
    assert json.loads(call(*words, "--json"))["classes"][3]["place"] == 0


def test_help_lists_an_added_selector(largest):
    text = " ".join(call("select", "--help").split())
    assert "largest keeps the classes with the most images" in text
    assert "largest: how many of the largest classes to keep (3)." in text


def test_discover_uses_an_added_selector(tmp_path, largest, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    for script, n in (("hebrew", 2), ("old-italic", 2)):
        call("data", "glyphs", "--out", tmp_path / script, "--scripts", script, "--per-class", n)
    words = ["--pool", tmp_path / "old-italic", "--target", tmp_path / "hebrew", "--k", 22, "--backbone", "glyph_vit"]
    call("discover", *words, "--method", "kmeans", "--selector", "largest", "--n-largest", 5, "--out", tmp_path / "run")
    saved = RunFolder.open(tmp_path / "run").selection
    assert (saved.name, saved.about["params"]) == ("largest", {"n_largest": 5})
    assert sum(saved.classes["weight"].to_pylist()) == 5.0
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "too small: 2 images" in page
    assert "class, from the nearest" in page
