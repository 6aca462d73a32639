from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from justright.features.table import FeatureTable
from justright.runs.counting import fitted_counter
from justright.runs.problem import Problem
from justright.runs.run_folder import RunFolder
from justright.runs.run_selection import RunSelection
from justright.runs.selection import load_selection
from justright.runs.spec import RunSpec
from justright.selection import SELECTORS, ClassWeights, Selector
from justright.utils.context import use
from justright.utils.errors import NothingSelectedError

ALONE = SimpleNamespace(is_first=True, in_turn=lambda work: work())
CENTERS = 0.6 + np.random.default_rng(0).normal(size=(16, 8))
N_OWN = 5 * 6


def features(labels, seed):
    return CENTERS[labels] + np.random.default_rng(seed).normal(0, 0.2, (len(labels), 8))


LABELS = np.repeat(np.arange(11), 6)
POOL = FeatureTable.of(features(LABELS, 1), label=LABELS, dataset=["target"] * N_OWN + ["birds"] * 36)
TARGET = FeatureTable.of(features(np.repeat(np.arange(3, 16), 5), 2))


class OwnFirst(Problem):
    """A problem with a number of own images and nothing else."""

    def __init__(self, n_own):
        vars(self)["n_own"] = n_own

    @property
    def own_rows(self):
        return np.arange(self.n_own)

    def is_reviewed(self):
        return np.zeros(len(POOL), dtype=bool)

    is_given_too = is_reviewed


@pytest.fixture
def select(tmp_path):
    """A function that weighs the pool of a run with this many own images; returns weights and notes."""

    def select(n_own=N_OWN, n_target=13, **spec):
        stage = RunSelection(OwnFirst(n_own), RunSpec(**spec), tmp_path, ALONE)
        return stage.weight(POOL, TARGET, n_target), stage.notes

    return select


def test_own_images_weigh_1_and_weights_are_saved(select, tmp_path):
    weight, notes = select(selector="bins", selector_params={"discard": False})
    assert weight[:N_OWN].tolist() == [1.0] * N_OWN
    assert set(weight[N_OWN:]) == {0.0, 1.0}
    assert notes == []
    saved = load_selection(tmp_path / "weights.parquet")
    assert saved.sample_weight.tolist() == weight.tolist()
    assert (saved.about["kept_images"], saved.about["params"]["n_clusters"]) == (N_OWN, 13)
    assert "kept_share" in saved.classes.column_names


@pytest.mark.parametrize("selector", ["beta", "bins", "cui"])
def test_engine_does_not_change_the_weights(select, tmp_path, selector):
    n_items = 0

    def elsewhere(work, items):
        nonlocal n_items
        for item in items:
            n_items += 1
            yield work(item)

    here, _ = select(selector=selector, n_resamples=0)
    written = (tmp_path / "weights.parquet").read_bytes()
    with use(engine=elsewhere):
        there, _ = select(selector=selector, n_resamples=0)
    assert n_items > 0
    assert here.tobytes() == there.tobytes()
    assert (tmp_path / "weights.parquet").read_bytes() == written


def test_select_labeled_weighs_own_classes(select, tmp_path):
    weight, _ = select(selector="cui", select_labeled=True, n_resamples=0)
    assert set(weight[:N_OWN]) == {0.0, 1.0}
    assert load_selection(tmp_path / "weights.parquet").about["kept_images"] == 0


def test_without_a_pool_nothing_is_saved(select, tmp_path):
    weight, _ = select(n_own=len(POOL), selector="bins")
    assert weight.tolist() == [1.0] * len(POOL)
    assert not list(tmp_path.iterdir())


def test_selector_that_drops_the_pool_leaves_own_labels(select):
    nothing = {"selector": "beta", "selector_params": {"threshold": 1e6}}
    weight, notes = select(**nothing)
    assert weight[N_OWN:].tolist() == [0.0] * 36
    assert notes[0].startswith("beta drops the whole pool (all 6 weights are 0")
    with pytest.raises(NothingSelectedError):
        select(n_own=0, **nothing)


def test_vanishing_weights_become_one_note(select, caplog):
    params = {"alpha": 20.0, "beta": 1.0, "reduction": "median"}
    _, notes = select(selector="beta", selector_params=params, n_resamples=10)
    (note,) = notes
    assert note.endswith("try --domain affine or --normalize mean (in Python domain='affine' or normalize='mean')")
    assert caplog.records == []


def test_auto_caches_the_diagnosis(select, tmp_path):
    _, notes = select(selector="auto", n_resamples=0)
    kept = json.loads((tmp_path / "diagnosis.json").read_text(encoding="utf-8"))
    assert notes == [f"auto: {kept['verdict'].rstrip('.')}"]
    RunFolder(tmp_path).save_json("diagnosis.json", kept | {"winner": "cui"})
    select(selector="auto", n_resamples=0)
    assert load_selection(tmp_path / "weights.parquet").name == "cui"


def test_auto_keeps_everything_without_a_diagnosis(select, tmp_path):
    weight, notes = select(n_own=0, selector="auto", n_resamples=0)
    assert set(weight) == {1.0}
    assert notes[0].startswith("auto: Take none, because the diagnosis is not possible")


def test_added_selector_weighs_a_run(select, tmp_path):
    class First(Selector):
        def _weigh(self, pool, target):
            classes = pool.classes()
            return ClassWeights(classes, (classes == 0).astype(float), ["told"] * len(classes))

    SELECTORS.add("first", First, "keeps the first class")
    try:
        weight, _ = select(selector="first", n_resamples=2)
    finally:
        del SELECTORS["first"]
    assert weight[N_OWN:].tolist() == [1.0] * 6 + [0.0] * 30
    saved = load_selection(tmp_path / "weights.parquet").weighed
    assert (saved.name, saved.classes["kept_share"].to_pylist()[:2]) == ("first", [1.0, 0.0])


def test_n_clusters_may_name_a_counter(select, tmp_path, monkeypatch):
    monkeypatch.setattr(OwnFirst, "own_classes", (0, 1, 2, 3, 4))
    select(selector="bins", selector_params={"n_clusters": "spread", "discard": False})
    params = load_selection(tmp_path / "weights.parquet").about["params"]
    assert params["n_clusters"] == fitted_counter("spread", POOL, TARGET, range(5), 0).n_categories_
