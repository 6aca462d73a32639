"""The whole way on drawn characters: small, but every stage is real."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from justright.benchmark.glyph_problem import OWN
from justright.benchmark.problem import Problem
from justright.benchmark.run import Run
from justright.benchmark.run_folder import RunFolder
from justright.benchmark.spec import RunSpec
from justright.data import gcd_split, glyph_set, merge_pool, random_half
from justright.errors import DataError
from justright.features.backbone import load_backbone
from justright.selection import BinsSelector

SETTINGS = {"n_epochs": 2, "batch_size": 32, "views": 2}


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("glyph_vit")


@pytest.fixture(scope="module")
def problem():
    target = glyph_set(8, ["hebrew"], dataset=OWN)
    split, truth = gcd_split(target, random_half(target.classes))
    pool = merge_pool([split.labeled, glyph_set(4, ["old-italic"], dataset="old-italic")])
    return Problem(pool, split.unlabeled, truth, len(target.classes))


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch):
    # one home for all: banks and features are shared, as they are for a user
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path_factory.getbasetemp() / "run-home"))


def spec_of(**changes) -> RunSpec:
    base = RunSpec(selector="none", scale="small", settings=SETTINGS, backbone="glyph_vit", n_target=22)
    return replace(base, **changes)


@pytest.fixture(scope="module")
def finished(problem, backbone, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUSTRIGHT_HOME", str(tmp_path_factory.getbasetemp() / "run-home"))
        return Run(problem, spec_of(selector="bins"), path, backbone).all()


def test_a_run_leaves_every_file_and_says_what_it_was(finished, problem):
    about = finished.about
    assert about["is_finished"]
    assert (about["method"], about["selector"], about["k_source"], about["n_target"]) == ("simgcd", "bins", "given", 22)
    assert about["config"]["n_epochs"] == 2
    assert about["versions"]["torch"]
    assert len(finished.predictions) == len(problem.target) == len(finished.tuned)
    assert len(finished.metrics) == 2
    assert finished.scores.n_classes == 22
    assert set(about["seconds"]) == {"extract", "count", "select", "train", "predict", "evaluate"}


def test_there_is_a_category_for_each_kept_class_and_for_each_of_the_target(finished, problem):
    weight = finished.selection.sample_weight
    kept = set(problem.pool.images.labels[weight > 0].tolist())
    own = set(problem.own_classes)
    assert finished.about["n_categories"] == len(kept | own) + 22 - len(own)
    known = [category.name for category in finished.predictions.categories if category.kind == "known"]
    assert known == [problem.pool.images.classes[label] for label in sorted(kept)]


def test_the_selection_says_how_stable_it_is(finished):
    share = np.array(finished.selection.classes["kept_share"].to_pylist())
    assert ((share >= 0) & (share <= 1)).all()
    assert share.max() > 0


def test_the_threshold_that_bins_found_stays_with_the_weights(finished):
    about = finished.selection.about
    pool, target = finished.frozen
    fitted = BinsSelector(**about["params"]).fit(pool.features, pool.labels, target.features)
    assert about["threshold"] == pytest.approx(fitted.threshold_, rel=1e-5)
    is_far = finished.selection.classes["distance"].to_numpy() > about["threshold"]
    assert (finished.selection.classes["bin"].to_numpy()[is_far] == 0).all()
    assert (finished.selection.classes["bin"].to_numpy()[~is_far] > 0).all()


def test_called_again_it_finds_everything_and_ends_the_same(finished, problem, backbone):
    before = {name: (finished.path / name).read_bytes() for name in ("predictions.parquet", "model.safetensors")}
    again = Run(problem, spec_of(selector="bins"), finished.path, backbone).all()
    assert {name: (again.path / name).read_bytes() for name in before} == before
    assert len(again.metrics) == 2


def test_another_question_in_the_same_folder_is_refused_with_the_difference(finished, problem, backbone):
    with pytest.raises(DataError, match=r"seed: 0 before, 1 now"):
        Run(problem, spec_of(selector="bins", seed=1), finished.path, backbone).all()


def test_labels_of_the_target_change_nothing_but_the_scores(finished, problem, backbone, tmp_path):
    """The truth is shuffled; every other file that the run leaves has the same bytes."""
    labels, _ = problem.truth.open_for_evaluation()
    shuffled = problem.truth._images.take(np.random.default_rng(0).permutation(len(labels)))
    other = replace(problem, truth=type(problem.truth)(shuffled, ()))
    run = Run(other, spec_of(selector="bins"), tmp_path / "run", backbone)
    run._evaluate = lambda method: None  # judging needs the right images; nothing after it trains
    again = run.all()
    for name in ("predictions.parquet", "weights.parquet", "model.safetensors", "tuned.npy"):
        assert (again.path / name).read_bytes() == (finished.path / name).read_bytes(), name


def test_k_is_estimated_once(problem, backbone, tmp_path):
    spec = spec_of(n_target=None, method="kmeans", settings={})
    run = Run(problem, spec, tmp_path / "run", backbone).all()
    assert run.about["k_source"] == "combined"
    assert run.about["n_target"] == run.count["estimates"]["combined"]["n_categories"]
    written = (run.path / "count.json").stat().st_mtime_ns
    Run(problem, spec, run.path, backbone).all()
    assert (run.path / "count.json").stat().st_mtime_ns == written


def test_soft_weights_and_resampling_run(problem, backbone, tmp_path):
    for weighting in ("soft", "resample"):
        spec = spec_of(selector="beta", selector_params={"domain": "affine"}, weighting=weighting)
        run = Run(problem, spec, tmp_path / weighting, backbone).all()
        weight = run.selection.sample_weight
        assert not np.isin(weight, (0, 1)).all()
        assert run.scores is not None


def test_a_run_that_was_stopped_says_so(problem, backbone, tmp_path):
    run = Run(problem, spec_of(), tmp_path / "run", backbone)
    run._begin()
    assert not RunFolder.open(tmp_path / "run").about["is_finished"]
    assert json.loads((tmp_path / "run" / "run.json").read_text())["spec"]["method"] == "simgcd"
