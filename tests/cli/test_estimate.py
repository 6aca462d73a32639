from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from justright.cli import main
from justright.cli.estimate import agreement
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
    return tmp_path


def run(*words: object):
    return CliRunner().invoke(main, ["estimate", *map(str, words)])


def test_both_counters_answer_and_are_compared(stores):
    done = run(stores / "labeled", "--target", stores / "target", "--max-k", 20, "--figure", stores / "k.svg")
    assert done.exit_code == 0, done.output
    assert "labeled-search" in done.stdout
    assert "mixture" in done.stdout
    assert "Both say" in done.stdout or "They differ by" in done.stdout
    assert (stores / "k.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_labels_of_the_target_change_nothing(stores):
    words = ("--max-k", 20, "--json", "--no-interval")
    seen = [run(stores / "labeled", "--target", stores / name, *words).stdout for name in ("target", "blind")]
    assert seen[0] == seen[1]
    found = json.loads(seen[0])
    assert found["labeled_classes"] == 4
    assert found["estimates"]["mixture"]["n_categories"] == 8


def test_the_estimates_go_to_a_file(stores):
    done = run(
        stores / "labeled",
        "--target",
        stores / "target",
        "--counter",
        "mixture",
        "--no-interval",
        "--out",
        stores / "k.json",
    )
    assert done.exit_code == 0, done.output
    assert list(json.loads((stores / "k.json").read_text())["estimates"]) == ["mixture"]


def test_a_store_without_labels_is_refused_without_a_traceback(stores):
    done = run(stores / "blind", "--target", stores / "target")
    assert done.exit_code == 1
    assert "none of the labeled images has a label" in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("estimates", "intervals", "said"),
    [
        ([7], [], ""),
        ([7, 7], [], "Both say 7."),
        ([10, 15], [], "differ by 5 (50%)."),
        ([10, 15], [(8, 12), (11, 16)], "overlap."),
        ([10, 15], [(8, 10), (14, 16)], "do not overlap"),
    ],
)
def test_agreement_is_said_in_a_sentence(estimates, intervals, said):
    assert said in agreement(estimates, intervals)
