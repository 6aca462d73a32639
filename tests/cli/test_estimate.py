from __future__ import annotations

import json
import re

import numpy as np
import pytest
from tests.cli.conftest import invoke

from justright.estimation import COUNTERS
from justright.features.table import FeatureTable


@pytest.fixture
def stores(tmp_path):
    """Eight classes far apart; four of them are labeled. The target's store has labels, which must not matter."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(8, 16)) * 4
    label = np.repeat(np.arange(8), 30)
    x = (centers[label] + rng.normal(size=(240, 16))).astype(np.float32)
    is_labeled = (label < 4) & (np.arange(240) % 2 == 0)
    FeatureTable.of(x[is_labeled], label=label[is_labeled]).write(tmp_path / "labeled")
    FeatureTable.of(x[~is_labeled], label=label[~is_labeled]).write(tmp_path / "target")
    FeatureTable.of(x[~is_labeled]).write(tmp_path / "blind")
    FeatureTable.of(x[label >= 4]).write(tmp_path / "other")
    return tmp_path


def run(*words: object):
    return invoke(["estimate", *words], exit_code=None)


def test_combined_estimate_comes_first(stores):
    done = run(stores / "labeled", "--target", stores / "target", "--max-k", 20, "--figure", stores / "k.svg")
    assert done.exit_code == 0, done.output
    places = [done.stdout.index(name) for name in COUNTERS]
    assert places[0] == min(places)
    assert "K = 8, 90 % interval " in done.stdout
    assert (stores / "k.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_labels_of_the_target_change_nothing(stores):
    words = ("--max-k", 20, "--json", "--no-interval")
    seen = [run(stores / "labeled", "--target", stores / name, *words).stdout for name in ("target", "blind")]
    assert seen[0] == seen[1]
    result = json.loads(seen[0])
    assert result["labeled_classes"] == 4
    assert list(result["estimates"]) == list(COUNTERS)
    assert {result["estimates"][name]["n_categories"] for name in ("combined", "mixture")} == {8}


def test_classes_of_other_kinds_are_not_counted(stores):
    words = (stores / "labeled", "--target", stores / "other", "--other-kinds", "--json")
    result = json.loads(run(*words).stdout)
    assert list(result["estimates"]) == ["combined", "mixture", "spread"]
    low, high = result["estimates"]["combined"]["interval"]
    assert low <= 4 <= high
    assert (result["labeled_classes"], result["images"]) == (0, 120)


def test_estimates_are_written_to_a_file(stores):
    options = ("--counter", "mixture", "--no-interval", "--out", stores / "k.json")
    done = run(stores / "labeled", "--target", stores / "target", *options)
    assert done.exit_code == 0, done.output
    assert list(json.loads((stores / "k.json").read_text())["estimates"]) == ["mixture"]


def test_store_without_labels_raises(stores):
    done = run(stores / "blind", "--target", stores / "target")
    assert done.exit_code == 1
    assert "none of the labeled images has a label" in done.output


def test_last_line_is_the_estimate_of_the_counter(stores):
    done = run(stores / "labeled", "--target", stores / "target", "--counter", "mixture", "--no-interval")
    assert re.fullmatch(r"K = \d+\.", done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--counter", "mixture", "--max-k", 20], "labeled-search, which is not among the counters: mixture"),
        (["--other-kinds", "--max-k", 20], "labeled-search, which is not among the counters: combined, mixture"),
        (
            ["--counter", "labeled-search", "--other-kinds"],
            "labeled-search needs labeled classes that the target shows",
        ),
        (["--max-k", 3], "--max-k 3 with 4 labeled classes"),
        (["--figure", "k.png"], "a name that ends in .svg"),
    ],
)
def test_invalid_options_raise_before_counting(stores, monkeypatch, words, message):
    for counter in COUNTERS.values():
        monkeypatch.setattr(counter, "fit", lambda *_, **__: pytest.fail("counting has begun"))
    done = run(stores / "labeled", "--target", stores / "target", *words)
    assert done.exit_code != 0
    assert message in done.output


def test_estimate_without_labels_has_a_wide_interval(stores):
    done = run("--target", stores / "target", "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert set(result["estimates"]) == {"combined", "spread"}
    low, high = result["estimates"]["combined"]["interval"]
    assert low <= 8 <= high
    assert high >= 2 * low
    assert result["labeled_classes"] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--other-kinds"], "--other-kinds needs LABELED"),
        (["--counter", "mixture"], "--counter mixture needs LABELED"),
        (["--max-k", 20], "--max-k is for labeled-search, which is not among the counters: combined, spread"),
    ],
)
def test_options_that_need_labels_raise_without_them(stores, words, message):
    done = run("--target", stores / "target", *words)
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
