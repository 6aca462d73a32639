"""Complete runs on drawn characters."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import torch
from safetensors import safe_open
from tests.leases import left_by_a_dead_process

from justright.clustering.baselines import BASELINES
from justright.data import ImageSet, gcd_split, glyph_set, merge_pool, random_half
from justright.data.folder import write_tree
from justright.data.readers import FolderReader
from justright.discovery import loop
from justright.discovery.methods import METHODS
from justright.discovery.predictions import consensus
from justright.features.backbone import load_backbone
from justright.features.table import FeatureTable
from justright.runs.counting import with_margin
from justright.runs.problem import OWN, Problem
from justright.runs.run import Run
from justright.runs.run_folder import OwnedError, RunFolder, owned
from justright.runs.spec import RunSpec, config_of
from justright.selection import BinsSelector
from justright.utils.context import use
from justright.utils.errors import DataError, DegenerateError, JustrightError
from justright.utils.parallel import ENGINES

SETTINGS = {"n_epochs": 2, "batch_size": 32, "views": 2}
SHORT = SETTINGS | {"n_epochs": 1, "n_steps": 2}


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
    # all tests share one cache of features and views
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path_factory.getbasetemp() / "run-home"))


def spec_of(**changes) -> RunSpec:
    base = RunSpec(selector="none", scale="small", settings=SETTINGS, backbone="glyph_vit", n_target=22, answer="joint")
    return replace(base, **changes)


@pytest.fixture(scope="module")
def finished(problem, backbone, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUSTRIGHT_HOME", str(tmp_path_factory.getbasetemp() / "run-home"))
        return Run(problem, spec_of(selector="bins"), path, backbone).all()


def test_run_writes_every_file(finished, problem):
    about = finished.about
    assert about["is_finished"]
    assert (about["method"], about["selector"], about["k_source"], about["n_target"]) == ("simgcd", "bins", "given", 22)
    assert about["config"]["n_epochs"] == 2
    assert about["versions"]["torch"]
    assert len(finished.predictions) == len(problem.target) == len(finished.tuned)
    assert len(finished.metrics) == 2
    assert finished.scores.n_classes == 22
    assert list(finished.scores.names) == ["all", "old", "new"]
    assert finished.scores.names["all"] <= 1
    scored = about["check"]["baselines"]
    assert list(scored) == list(BASELINES)
    assert all(0 < each["all"] <= 1 and set(each["names"]) == {"all", "old", "new"} for each in scored.values())
    stages = {"extract", "count", "select", "train", "check", "predict", "evaluate"}
    assert set(about["seconds"]) == stages


def test_run_reports_expected_accuracy_of_images_and_clusters(finished):
    result = finished.predictions
    assert finished.expected.n == int((~result.is_given).sum()) == len(result)
    rows = pyarrow.csv.read_csv(finished.path / "clusters.csv").to_pylist()
    assert [row["category"] for row in rows] == [category.name for category in result.categories]
    assert sum(row["images"] for row in rows) == len(result)
    for number, row in enumerate(rows):
        if row["images"]:
            assert row["expected_purity"] == pytest.approx(result.confidence[result.cluster == number].mean(), abs=1e-4)
    doubts = {result.categories[doubt.category].name: doubt.kind for doubt in finished.doubts}
    assert {row["category"]: row["doubt"] for row in rows if row["doubt"]} == doubts
    for doubt in finished.doubts:
        assert set(result.cluster[list(doubt.rows)].tolist()) == {doubt.category}


def test_published_assignment_has_no_expected_purity(problem, backbone, tmp_path):
    run = Run(problem, spec_of(answer="method"), tmp_path / "run", backbone).all()
    assert (run.expected, run.doubts) == (None, [])
    rows = pyarrow.csv.read_csv(run.path / "clusters.csv").to_pylist()
    assert {row["expected_purity"] for row in rows} == {None}


def test_check_notes_training_cut_short_for_all_seeds(problem, backbone, tmp_path):
    settings = SETTINGS | {"n_epochs": 12, "n_steps": 1, "minutes": 1e-6}
    about = Run(problem, spec_of(settings=settings, n_seeds=2), tmp_path / "run", backbone).all().about
    assert about["check"]["trained_share"] == 2 / 12
    assert "there was time for 17% of the epochs" in "; ".join(about["notes"])


def known_names(run) -> list[str]:
    return [category.name for category in run.predictions.categories if category.kind == "known"]


def test_no_category_is_a_pool_class(finished, problem):
    assert finished.about["n_categories"] == 22
    assert finished.about["pool_role"] == "guide"
    assert known_names(finished) == [problem.pool.images.classes[label] for label in problem.own_classes]


def test_own_classes_keep_weight_1(finished, problem):
    saved, n_own = finished.selection, len(problem.own_classes)
    is_own = np.isin(saved.images["label"].to_numpy(), problem.own_classes)
    assert is_own.sum() == len(problem.own_rows)
    assert (saved.sample_weight[is_own] == 1).all()
    assert saved.images["class_name"].to_pylist() == [
        problem.pool.images.classes[label] for label in problem.pool.images.labels.tolist()
    ]
    assert saved.classes["weight"].to_pylist()[:n_own] == [1.0] * n_own
    assert saved.classes["distance"].null_count == n_own
    assert saved.classes["label"].to_pylist() == list(range(len(problem.pool.origins)))
    assert len(saved.weighed.classes) == len(problem.pool.origins) - n_own
    assert 0 < saved.weighed.sample_weight.sum() < len(problem.other_rows)


def test_rival_pool_classes_are_categories(problem, backbone, tmp_path):
    spec = spec_of(selector="bins", pool_role="rival", select_labeled=True, method="kmeans", settings={})
    run = Run(problem, spec, tmp_path / "run", backbone).all()
    kept = set(problem.pool.images.labels[run.selection.sample_weight > 0].tolist())
    own = set(problem.own_classes)
    assert kept != own | kept, "own classes are selected from as well"
    assert run.about["n_categories"] == len(kept | own) + 22 - len(own)
    assert known_names(run) == [problem.pool.images.classes[label] for label in sorted(kept)]


def test_plain_kmeans_ignores_the_pool_for_k(problem, backbone, tmp_path):
    for role in ("guide", "rival"):
        spec = spec_of(pool_role=role, method="kmeans", settings={"use_labels": False})
        run = Run(problem, spec, tmp_path / role, backbone).all()
        assert run.about["n_categories"] == 22
        assert known_names(run) == []


def test_run_records_content_ids_whatever_the_given_ids(problem, backbone, tmp_path):
    write_tree(problem.target, tmp_path / "photos")
    paths = [f"{path}.png" for path in problem.target.paths]
    ids = [f"{row:032x}" for row in range(len(paths))]
    files = ImageSet.of(FolderReader(tmp_path / "photos"), dataset=OWN, path=paths, id=ids)
    spec = spec_of(method="kmeans", settings={})
    target = Run(replace(problem, target=files, truth=None), spec, tmp_path / "run", backbone).all().target
    assert target.ids == ids
    assert target.changed() == []
    (tmp_path / "photos" / paths[0]).write_bytes((tmp_path / "photos" / paths[1]).read_bytes())
    assert target.changed() == [f"{paths[0]}: the file was changed or replaced since the run"]


def test_k_does_not_count_classes_of_a_pool(problem, backbone, tmp_path):
    pool = merge_pool([glyph_set(6, ["old-italic", "digits"], dataset="others")])
    alone = Problem(pool, problem.target, n_target_classes=22)
    run = Run(alone, spec_of(n_target=None, method="kmeans", settings={}), tmp_path / "run", backbone).all()
    assert run.about["n_categories"] == run.about["n_target"]
    low, high = run.count["estimates"]["combined"]["interval"]
    assert low <= 22 <= high


def test_target_without_own_labels_has_k_new_categories(problem, backbone, tmp_path):
    pool = merge_pool([glyph_set(4, ["old-italic"], dataset="old-italic")])
    alone = Problem(pool, problem.target, n_target_classes=22)
    for method, settings in (("kmeans", {}), ("simgcd", SHORT)):
        spec = spec_of(selector="none", method=method, settings=settings)
        run = Run(alone, spec, tmp_path / method, backbone).all()
        assert run.about["n_categories"] == 22
        assert known_names(run) == []


def test_empty_selection_keeps_own_labels_and_warns(problem, backbone, tmp_path):
    spec = spec_of(selector="beta", selector_params={"threshold": 1e6}, method="kmeans", settings={})
    run = Run(problem, spec, tmp_path / "run", backbone).all()
    assert (run.selection.weighed.sample_weight == 0).all()
    assert "drops the whole pool" in run.about["notes"][0]


def test_without_a_pool_there_is_nothing_to_select(problem, backbone, tmp_path):
    own = merge_pool([problem.pool.images.take(problem.own_rows)])
    alone = replace(problem, pool=own)
    run = Run(alone, spec_of(selector="bins", method="kmeans", settings={}), tmp_path / "run", backbone).all()
    assert run.selection is None
    assert run.about["n_known"] == 11


def test_selection_has_the_stability_of_each_class(finished):
    share = finished.selection.weighed.classes["kept_share"].to_numpy()
    assert ((share >= 0) & (share <= 1)).all()
    assert share.max() > 0


def test_threshold_of_bins_is_saved_with_the_weights(finished):
    about = finished.selection.about
    pool, target = finished.frozen
    others = pool.from_row(about["kept_images"])
    fitted = BinsSelector(**about["params"]).fit(others.features, others.labels, target.features)
    assert about["threshold"] == pytest.approx(fitted.threshold_, rel=1e-5)
    classes = finished.selection.weighed.classes
    is_far = classes["distance"].to_numpy() > about["threshold"]
    assert (classes["bin"].to_numpy()[is_far] == 0).all()
    assert (classes["bin"].to_numpy()[~is_far] > 0).all()


def test_second_call_reuses_everything(finished, problem, backbone):
    before = {name: (finished.path / name).read_bytes() for name in ("predictions.parquet", "model.safetensors")}
    again = Run(problem, spec_of(selector="bins"), finished.path, backbone).all()
    assert {name: (again.path / name).read_bytes() for name in before} == before
    assert len(again.metrics) == 2


@pytest.mark.parametrize("damage", ["deleted", "truncated", "zeros"])
def test_lost_metrics_and_truth_are_rewritten(finished, problem, backbone, damage, caplog):
    for name in ("metrics.jsonl", "truth.parquet"):
        path = finished.path / name
        before = path.read_bytes()
        if damage == "deleted":
            path.unlink()
        else:
            path.write_bytes(before[: len(before) // 2] if damage == "truncated" else bytes(len(before)))
        again = Run(problem, spec_of(selector="bins"), finished.path, backbone).all()
        assert path.read_bytes() == before
        assert f"{path} is missing or damaged; it is recomputed" in caplog.text
        assert len(again.metrics) == 2


def test_lost_truth_must_be_given_again(finished, problem, backbone, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(finished.path, run)
    (run / "truth.parquet").unlink()
    with pytest.raises(DataError, match=r"truth\.parquet is missing"):
        Run(replace(problem, truth=None), spec_of(selector="bins"), run, backbone).all()


def test_resume_accepts_a_moved_backbone_checkpoint_only(problem, backbone, tmp_path):
    for name, content in (("one", b"same"), ("moved", b"same"), ("other", b"other")):
        (tmp_path / name).write_bytes(content)
    spec = spec_of(method="kmeans", settings={}, checkpoint=tmp_path / "one")
    run = Run(problem, spec, tmp_path / "run", backbone).all()
    spec.checkpoint.unlink()
    moved, other = (replace(spec, checkpoint=tmp_path / name) for name in ("moved", "other"))
    assert Run(problem, moved, tmp_path / "run", backbone).all().about["spec"] == run.about["spec"]
    with pytest.raises(DataError, match=r"checkpoint\.content: .* before"):
        Run(problem, other, tmp_path / "run", backbone).all()


def test_resume_rejects_another_request_with_a_diff(finished, problem, backbone):
    with pytest.raises(DataError, match=r"seed: 0 before, 1 now"):
        Run(problem, spec_of(selector="bins", seed=1), finished.path, backbone).all()


def test_target_labels_change_scores_only(finished, problem, backbone, tmp_path):
    """With a shuffled truth all other files have the same bytes."""
    labels, _ = problem.truth.open_for_evaluation()
    shuffled = problem.truth._images.take(np.random.default_rng(0).permutation(len(labels)))
    other = replace(problem, truth=type(problem.truth)(shuffled, ()))
    run = Run(other, spec_of(selector="bins"), tmp_path / "run", backbone)
    run._evaluate = lambda *given: None  # it would fail for shuffled images
    again = run.all()
    for name in ("predictions.parquet", "weights.parquet", "model.safetensors", "tuned.npy"):
        assert (again.path / name).read_bytes() == (finished.path / name).read_bytes(), name


def test_many_images_are_not_compared_with_simple_methods(problem, backbone, tmp_path, monkeypatch):
    for module in ("run", "frozen_check"):
        monkeypatch.setattr(f"justright.runs.{module}.MOST_ROWS", 100)
    run = Run(problem, spec_of(settings=SHORT), tmp_path / "run", backbone).all()
    assert run.about["check"]["baselines"] is None
    assert any(
        "not compared with simple methods" in note and "at most 100 images are" in note for note in run.about["notes"]
    )


def test_k_is_estimated_once(problem, backbone, tmp_path):
    spec = spec_of(n_target=None, method="kmeans", settings={})
    run = Run(problem, spec, tmp_path / "run", backbone).all()
    assert run.about["k_source"] == "combined"
    estimate = run.count["estimates"]["combined"]
    low, high = estimate["interval"]
    assert run.about["n_target"] == with_margin(estimate, run.about["n_known"]) > estimate["n_categories"]
    k, n_target = estimate["n_categories"], run.about["n_target"]
    note = f"K is estimated as {k}, 90 % interval {low} to {high}; {n_target} categories"
    assert any(each.startswith(note) for each in run.about["notes"])
    written = (run.path / "count.json").stat().st_mtime_ns
    Run(problem, spec, run.path, backbone).all()
    assert (run.path / "count.json").stat().st_mtime_ns == written


def test_method_answer_takes_the_estimate_itself(problem, backbone, tmp_path):
    spec = spec_of(n_target=None, method="kmeans", settings={}, answer="method")
    run = Run(problem, spec, tmp_path / "run", backbone).all()
    assert run.about["n_target"] == run.count["estimates"]["combined"]["n_categories"]
    assert not any("K is estimated" in note for note in run.about["notes"])


@pytest.mark.parametrize(("given", "side"), [(14, "small"), (22, None), (100, "large")])
def test_given_k_is_used_and_warned_about_if_implausible(problem, backbone, tmp_path, caplog, given, side):
    spec = spec_of(n_target=given, method="kmeans", settings={})
    run = Run(problem, spec, tmp_path / "run", backbone, is_interactive=True).all()
    assert (run.about["n_target"], run.about["k_source"]) == (given, "given")
    doubts = [note for note in run.about["notes"] if note.startswith(f"--k {given}")]
    assert [f"too {side}" in doubt for doubt in doubts] == ([True] if side else [])
    assert caplog.text.count("looks too") == len(doubts), "the warning is logged before training"


def test_unverifiable_k_is_noted(problem, backbone, tmp_path, monkeypatch):
    def fails(*_args):
        raise DegenerateError("too few images")

    monkeypatch.setattr("justright.runs.counting.counted", fails)
    run = Run(problem, spec_of(method="kmeans", settings={}), tmp_path / "run", backbone, is_interactive=True).all()
    assert any("--k 22 was not checked: too few images" in note for note in run.about["notes"])


@pytest.mark.parametrize("changes", [{"most": 10}, {"is_interactive": False}])
def test_k_is_checked_only_if_requested_and_fast(problem, backbone, tmp_path, monkeypatch, changes):
    monkeypatch.setattr("justright.runs.counting.MOST_CHECKED", changes.get("most", 20_000))
    spec, is_interactive = spec_of(method="kmeans", settings={}), changes.get("is_interactive", True)
    run = Run(problem, spec, tmp_path / "run", backbone, is_interactive=is_interactive).all()
    assert run.count is None


def test_soft_weights_and_resampling_run(problem, backbone, tmp_path):
    for weighting in ("soft", "resample"):
        given = {"selector": "beta", "selector_params": {"domain": "affine"}, "weighting": weighting}
        spec = spec_of(settings=SHORT, **given)
        run = Run(problem, spec, tmp_path / weighting, backbone).all()
        weight = run.selection.weighed.sample_weight
        assert not np.isin(weight, (0, 1)).all()
        assert run.scores is not None


def test_stopped_run_is_marked_unfinished(problem, backbone, tmp_path):
    run = Run(problem, spec_of(), tmp_path / "run", backbone)
    run._prepare()
    assert not RunFolder.open(tmp_path / "run").about["is_finished"]
    assert json.loads((tmp_path / "run" / "run.json").read_text())["spec"]["method"] == "simgcd"


def test_features_are_verified_once_and_no_image_is_hashed_twice(problem, backbone, tmp_path, monkeypatch):
    opened, hashed = [], []
    open_table, content_id = FeatureTable.open.__func__, ImageSet.computed_id

    def noted_open(cls, path, verify=True):
        opened.append(path.name)
        return open_table(cls, path, verify)

    def noted_id(self, row):
        if self.table["id"][row].as_py() is None:
            hashed.append((self.table["dataset"][row].as_py(), self.table["path"][row].as_py()))
        return content_id(self, row)

    monkeypatch.setattr(FeatureTable, "open", classmethod(noted_open))
    monkeypatch.setattr(ImageSet, "computed_id", noted_id)
    Run(problem, spec_of(method="kmeans", settings={}), tmp_path / "run", backbone).all()
    assert sorted(opened) == ["pool.features", "target.features"]
    assert len(set(hashed)) == len(hashed)


def test_invalid_setting_is_rejected_before_any_work(problem, backbone, tmp_path):
    with pytest.raises(JustrightError, match="no setting 'nonsense'"):
        Run(problem, spec_of(settings={"nonsense": 1}), tmp_path / "run", backbone)
    assert not (tmp_path / "run").exists()


def test_unreadable_truth_is_rejected_before_any_work(problem, backbone, tmp_path):
    (tmp_path / "truth.csv").write_text("path,label\na.png,1\n")
    with pytest.raises(DataError, match="is_old"):
        Run(problem, spec_of(), tmp_path / "run", backbone, truth=tmp_path / "truth.csv").all()
    assert not (tmp_path / "run").exists()


def test_rejected_request_leaves_the_run_finished(finished, problem, backbone, tmp_path, monkeypatch):
    before = (finished.path / "run.json").read_bytes()
    (tmp_path / "truth.csv").write_text("no truth")
    again = Run(problem, spec_of(selector="bins"), finished.path, backbone, truth=tmp_path / "truth.csv")
    with pytest.raises(DataError):
        again.all()
    assert (finished.path / "run.json").read_bytes() == before
    again.truth = None

    def refuse(costs):
        raise JustrightError("there is no room for this run")

    monkeypatch.setattr(type(again.costs), "check_disk", refuse)
    with pytest.raises(JustrightError, match="no room"):
        again.all()
    assert (finished.path / "run.json").read_bytes() == before


def test_truth_file_is_copied_and_scored(problem, backbone, tmp_path):
    problem.truth.save(tmp_path / "truth.parquet")
    unknown = replace(problem, truth=None)
    run = Run(
        unknown, spec_of(method="kmeans", settings={}), tmp_path / "run", backbone, truth=tmp_path / "truth.parquet"
    ).all()
    assert run.scores.n_classes == 22
    assert run.truth_file == tmp_path / "run" / "truth.parquet"


def test_damaged_features_are_rejected_with_advice(problem, backbone, tmp_path):
    spec = spec_of(method="kmeans", settings={})
    run = Run(problem, spec, tmp_path / "run", backbone).all()
    data = run.path / "target.features" / "features.npy"
    data.write_bytes(data.read_bytes()[:-4])
    with pytest.raises(DataError, match=r"(?s)Try: delete .*target.features"):
        Run(problem, spec, run.path, backbone).all()


def test_run_in_a_locked_folder_is_rejected(problem, backbone, tmp_path):
    with owned(tmp_path), pytest.raises(OwnedError, match=f"process {os.getpid()} since"):
        Run(problem, spec_of(method="kmeans", settings={}), tmp_path, backbone).all()
    assert list(tmp_path.iterdir()) == []


def test_only_the_first_process_locks_the_folder(problem, backbone, tmp_path, monkeypatch):
    run = Run(problem, spec_of(method="kmeans", settings={}), tmp_path, backbone)
    monkeypatch.setattr(run, "_stages", lambda: RunFolder(tmp_path))
    run.processes.rank = 1
    with owned(tmp_path):
        assert run.all() == RunFolder(tmp_path)
    run.processes.rank = 0
    with owned(tmp_path), pytest.raises(OwnedError):
        run.all()


def test_finished_run_keeps_one_small_checkpoint(problem, backbone, tmp_path):
    few = Problem(merge_pool([problem.pool.images.take(range(0, 80, 4))]), problem.target.take(range(0, 132, 3)))
    spec = spec_of(method="mugcd", settings=SETTINGS)
    run = Run(few, spec, tmp_path / "run", backbone).all()
    for folder in (run.path, run.path / "stage1"):
        (checkpoint,) = (folder / "checkpoint").iterdir()
        with safe_open(checkpoint, framework="np") as file:
            assert {name.split("/")[0] for name in file.keys()} == {"network"}  # noqa: SIM118
    before = {name: (run.path / name).read_bytes() for name in ("predictions.parquet", "model.safetensors")}
    again = Run(few, spec, run.path, backbone).all()
    assert {name: (again.path / name).read_bytes() for name in before} == before


def test_leftovers_of_killed_processes_are_removed(problem, backbone, tmp_path):
    half = left_by_a_dead_process(tmp_path / "run" / "checkpoint" / "step-000000009.safetensors")
    half.parent.mkdir(parents=True)
    half.write_bytes(b"half")
    Run(problem, spec_of(method="kmeans", settings={}), tmp_path / "run", backbone).all()
    assert not half.exists()


def test_mismatched_weights_and_features_are_rejected_early(problem, backbone, tmp_path):
    (tmp_path / "w.csv").write_text("class_name,weight\nno such class,1\n")
    FeatureTable.of(np.ones((3, 128), np.float32)).write(tmp_path / "strange")
    for given, message in (
        ({"selector": "given", "weights": tmp_path / "w.csv"}, "does not have: no such class"),
        ({"features": (tmp_path / "strange",)}, "strange holds features that this run would not compute"),
        ({"features": (tmp_path / "nowhere",)}, "no such file"),
    ):
        with pytest.raises(DataError, match=message):
            Run(problem, spec_of(**given), tmp_path / "run", backbone).all()
    assert not (tmp_path / "run").exists()


def test_resumed_run_keeps_its_thread_count(problem, backbone, tmp_path, monkeypatch, caplog):
    def stopped(*_):
        raise KeyboardInterrupt

    before, used = torch.get_num_threads(), []
    monkeypatch.setattr(Run, "_learn", stopped)
    with pytest.raises(KeyboardInterrupt):
        Run(problem, spec_of(method="kmeans", settings={}), tmp_path, backbone).all()
    monkeypatch.setattr(Run, "_learn", lambda run, *_: used.append(torch.get_num_threads()) or stopped())
    torch.set_num_threads(before + 1)
    try:
        with pytest.raises(KeyboardInterrupt):
            Run(problem, spec_of(method="kmeans", settings={}), tmp_path, backbone).all()
    finally:
        torch.set_num_threads(before)
    assert used == [before] == [RunFolder(tmp_path).about["threads"]]
    assert f"was started with OMP_NUM_THREADS={before} and now it is {before + 1}" in caplog.text


def test_seeds_vote_and_each_resumes(problem, backbone, tmp_path, monkeypatch):
    spec = spec_of(n_seeds=3, settings=SHORT, answer="method")
    finished = Run(problem, spec, tmp_path / "run", backbone).all()
    specs = [replace(spec, seed=seed, n_seeds=1) for seed in range(3)]
    single = [Run(problem, each, tmp_path / f"one-{each.seed}", backbone).all() for each in specs]
    result = consensus([run.predictions for run in single])
    np.testing.assert_array_equal(finished.predictions.cluster, result.predictions.cluster)
    np.testing.assert_array_equal(finished.predictions.confidence, result.predictions.confidence)
    assert any("a vote of seeds 0, 1, 2" in note for note in finished.about["notes"])
    assert not list((tmp_path / "run").rglob("*.tmp"))
    before = (tmp_path / "run" / "predictions.parquet").read_bytes()
    monkeypatch.setattr(loop.Training, "_step", lambda *_: pytest.fail("trained again"))
    assert Run(problem, spec, tmp_path / "run", backbone).all().about["is_finished"]
    assert (tmp_path / "run" / "predictions.parquet").read_bytes() == before


def test_several_seeds_give_one_joint_answer(problem, backbone, tmp_path):
    done = Run(problem, spec_of(n_seeds=2, settings=SHORT, answer="joint"), tmp_path / "run", backbone).all()
    assert done.about["answer"] == "joint"
    expected = done.about["expected_right"]
    assert expected["low"] <= expected["expected"] <= expected["high"] <= expected["n"] == len(done.predictions)


def test_answer_of_the_method_is_unchanged(problem, backbone, tmp_path):
    done = Run(problem, spec_of(settings=SHORT, answer="method"), tmp_path / "run", backbone).all()
    made = METHODS["simgcd"](22, backbone, config_of(spec_of(settings=SHORT)), seed=0)
    made.fit(problem.split("guide"), np.ones(len(problem.pool.images)))
    np.testing.assert_array_equal(done.predictions.cluster, made.labels_)
    np.testing.assert_array_equal(done.predictions.confidence, made.confidence_)
    assert not (tmp_path / "run" / "evidence.parquet").exists()
    assert done.about["expected_right"] is None
    joint = Run(problem, spec_of(settings=SHORT, answer="joint"), tmp_path / "joint", backbone).all()
    kept = pq.read_table(joint.path / "evidence.parquet")
    np.testing.assert_array_equal(kept["method cluster"].to_numpy(), made.labels_)


@pytest.mark.usefixtures("forked_workers")
def test_another_engine_gives_the_same_run(problem, backbone, tmp_path, monkeypatch):
    spec = spec_of(selector="beta", n_resamples=0, settings=SHORT)
    here = Run(problem, spec, tmp_path / "here", backbone).all()
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))  # an empty cache
    with ENGINES["processes"](1) as engine, use(engine=engine):
        there = Run(problem, spec, tmp_path / "there", backbone).all()
    for name in ("weights.parquet", "predictions.parquet", "tuned.npy", "model.safetensors"):
        assert (here.path / name).read_bytes() == (there.path / name).read_bytes(), name
