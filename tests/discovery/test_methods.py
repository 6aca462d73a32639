from __future__ import annotations

import subprocess
import sys

import pytest
from tests.contributing_examples import example
from tests.discovery.tiny import Stopped, final_bytes, stop_after

from justright.data import gcd_split, glyph_set, merge_pool, random_half
from justright.discovery import loop
from justright.discovery.methods import METHODS, is_trained
from justright.discovery.model_files import about_model
from justright.evaluation import evaluate
from justright.features.backbone import load_backbone
from justright.runs.problem import OWN, Problem
from justright.runs.run import Run
from justright.runs.spec import RunSpec
from justright.utils.context import use


def test_every_method_is_registered():
    assert list(METHODS) == ["kmeans", "gcd", "xcon", "simgcd", "mugcd", "cms", "selex"]
    assert all(method.name == name for name, method in METHODS.items())


def test_all_methods_but_kmeans_train():
    assert [name for name in METHODS if not is_trained(name)] == ["kmeans"]


def test_names_and_help_lines_are_read_without_torch():
    code = """
import sys
from justright.discovery.methods import METHODS
from justright.discovery.training_data import WEIGHTINGS
from justright.estimation import COUNTERS
from justright.runs.problem import POOL_ROLES
from justright.runs.spec import SCALES
assert all(METHODS.about(name) for name in METHODS) and all(COUNTERS.about(name) for name in COUNTERS)
assert "auto" in WEIGHTINGS and "guide" in POOL_ROLES and "small" in SCALES
print(sorted({"torch", "timm", "scipy"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def pulled():
    example("method")
    yield "pulled"
    del METHODS["pulled"]


def test_custom_method_runs_resumes_predicts_and_saves(pulled, split, backbone, tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    problem = Problem(merge_pool([split.labeled.named(OWN)]), split.unlabeled)
    settings = {"pull": 2.0, "n_epochs": 2, "batch_size": 8, "views": 2}
    spec = RunSpec(method=pulled, scale="small", settings=settings, n_target=5)
    run = Run(problem, spec, tmp_path / "whole", backbone).all()
    assert run.about["config"]["pull"] == 2.0
    assert [record["loss"] for record in run.metrics] == [2 * record["pulled"] for record in run.metrics]

    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)  # after each step
    with pytest.raises(Stopped), use(progress=stop_after(3)):
        Run(problem, spec, tmp_path / "cut", backbone).all()
    Run(problem, spec, tmp_path / "cut", backbone).all()
    assert final_bytes(tmp_path / "cut") == final_bytes(tmp_path / "whole")
    assert (tmp_path / "cut" / "predictions.parquet").read_bytes() == (run.path / "predictions.parquet").read_bytes()

    loaded = METHODS[about_model(run.path)["method"]].load(run.path, backbone)
    assert type(loaded) is METHODS[pulled]
    assert loaded.config_.pull == 2.0
    nearest = loaded.predict(split.unlabeled, neither=0.0).cluster
    assert (nearest == run.predictions.cluster).mean() > 0.85  # k-means may move a centroid after the last assignment


def test_learning_beats_clusters_of_frozen_features(tmp_path):
    images = glyph_set(24, ["armenian"])
    images = images.of_classes(sorted(images.classes)[:16])
    split, truth = gcd_split(images, random_half(images.classes))
    y_true, is_old = truth.open_for_evaluation()
    backbone, accuracy = load_backbone("glyph_vit"), {}
    for name in ("kmeans", "gcd", "simgcd", "cms", "selex"):
        config = METHODS[name].config_class(n_init=3)
        if name != "kmeans":
            quick = {"n_epochs": 4, "batch_size": 32, "views": 2, "learning_rate": 0.05}
            config = config.small().with_settings(quick)
        method = METHODS[name](16, backbone, config, bank=tmp_path).fit(split)
        accuracy[name] = evaluate(y_true, method.labels_, is_old).all
    baseline = accuracy.pop("kmeans")
    assert all(found > baseline + 0.1 for found in accuracy.values()), (baseline, accuracy)
