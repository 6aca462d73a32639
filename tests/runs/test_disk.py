"""The disk space of a run is computed before it starts, and a run that does not fit is rejected."""

from __future__ import annotations

import shutil
from collections import namedtuple
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from justright.data import glyph_set, merge_pool
from justright.discovery import loop
from justright.features.backbone import load_backbone
from justright.runs.costs import CostPlan, Work
from justright.runs.problem import Problem
from justright.runs.run import Run
from justright.runs.spec import RunSpec
from justright.utils.errors import JustrightError

Usage = namedtuple("Usage", "total used free")
SETTINGS = {"n_epochs": 1, "n_steps": 1, "batch_size": 8}


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("glyph_vit")


@pytest.fixture(scope="module")
def problem():
    return Problem(merge_pool([glyph_set(2, ["digits"], dataset="digits")]), glyph_set(2, ["hebrew"]).without_labels())


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def plan_of(problem, backbone, tmp_path):
    def make(method="simgcd", **settings):
        settings = settings if method == "kmeans" else SETTINGS | settings
        spec = RunSpec(method=method, scale="small", settings=settings, n_target=22)
        return CostPlan(Work.of(problem, spec), spec, backbone, tmp_path / "run")

    return make


def banks(plan):
    return {each.what: each.n_bytes for each in plan.files() if each.stage == "views"}


def free(n_bytes, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 0, n_bytes))


def needed(plan):
    return sum(each.n_missing for each in plan.files())


def test_views_are_counted_by_number_precision_and_kind(plan_of):
    plain = {"1 plain view of each image in float32": banks(plan_of())["1 plain view of each image in float32"]}
    four, eight = (banks(plan_of(views=views))[f"{views} weak views of each image in float16"] for views in (4, 8))
    assert 2 * four == eight
    assert set(banks(plan_of(views="fresh"))) == set(plain)
    mugcd = banks(plan_of("mugcd", views=4, bank_precision="float32"))
    assert set(mugcd) == {*plain, "4 strong views of each image in float32", "4 weak views of each image in float32"}
    assert banks(plan_of("kmeans")) == {}, "features before training need no views"


def test_a_run_writes_what_was_planned(problem, backbone, home, tmp_path, monkeypatch):
    spec = RunSpec(scale="small", settings=SETTINGS, backbone="glyph_vit", n_target=22)
    folder = tmp_path / "run"
    run = Run(problem, spec, folder, backbone)
    planned = {(each.what, each.folder): each.n_bytes for each in run.costs.files()}
    run.all()
    written = {
        ("features", folder): [*folder.glob("*.features/*.npy")],
        ("features", home / "features"): [*(home / "features").rglob("*.block")],
        ("model and tuned features", folder): [folder / "model.safetensors", folder / "tuned.npy"],
    }
    n_views = sum(planned.pop((what, home / "banks")) for what in banks(run.costs))
    assert n_views <= sum(file.stat().st_size for file in (home / "banks").rglob("*.block")) < n_views + 3 * 4096
    del planned["checkpoints", folder]  # removed at the end; their largest size is tested below
    assert set(planned) == set(written)
    for key, files in written.items():
        n_bytes = sum(file.stat().st_size for file in files)
        assert 0.9 * planned[key] <= n_bytes <= planned[key] + 8192, key
    free(0, monkeypatch)
    run.costs.check_disk()  # a finished run needs no more disk


@pytest.fixture
def peaks(tmp_path, monkeypatch):
    """The largest number of bytes on disk at a time, sampled when a file is moved into place."""
    most = {"checkpoints": 0, "all": 0}
    replace_file = Path.replace

    def replace_and_measure(self, target):
        sizes = {}
        for path in tmp_path.rglob("*"):
            with suppress(FileNotFoundError):  # another thread has moved it
                sizes[path] = path.stat().st_size if path.is_file() else 0
        most["all"] = max(most["all"], sum(sizes.values()))
        of_checkpoints = sum(size for path, size in sizes.items() if path.parent.name == "checkpoint")
        most["checkpoints"] = max(most["checkpoints"], of_checkpoints)
        return replace_file(self, target)

    monkeypatch.setattr(Path, "replace", replace_and_measure)
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)  # after each step
    return most


HEADS = {"hidden_dim": 512, "out_dim": 128}


@pytest.mark.parametrize(
    ("method", "settings", "n_seeds"),
    [
        ("kmeans", {}, 1),
        ("simgcd", HEADS, 3),
        ("simgcd", HEADS | {"heads_first": 2}, 1),
        ("gcd", HEADS | {"n_out": 4096}, 1),
        ("xcon", HEADS | {"n_out": 4096}, 1),
        ("mugcd", HEADS, 1),
        ("cms", HEADS | {"n_out": 768}, 1),
        ("selex", HEADS, 1),
    ],
)
def test_a_run_takes_at_most_the_planned_disk_and_at_least_half(
    method, settings, n_seeds, problem, backbone, peaks, tmp_path
):
    given = settings if method == "kmeans" else SETTINGS | {"n_steps": 3} | settings
    spec = RunSpec(method=method, scale="small", settings=given, backbone="glyph_vit", n_target=22, n_seeds=n_seeds)
    run = Run(problem, spec, tmp_path / "run", backbone)
    planned = {each.what: each.n_bytes for each in run.costs.files()}
    total = sum(each.n_bytes for each in run.costs.files())
    run.all()
    assert peaks["checkpoints"] <= planned["checkpoints"] <= 2 * peaks["checkpoints"]
    small_files = 1_000_000  # image tables, headers and predictions are not planned
    assert peaks["all"] - small_files <= total <= 2 * peaks["all"]


def test_published_xcon_needs_gigabytes_for_checkpoints(plan_of):
    plan = plan_of("xcon")
    plan = replace(plan, spec=RunSpec(method="xcon", n_target=22))
    checkpoints = next(each.n_bytes for each in plan.files() if each.what == "checkpoints")
    assert checkpoints > 3 * 9 * 2 * 4 * 65536 * 256, "nine heads and their momentum, three times"


def test_too_little_disk_raises_and_says_what_takes_it(plan_of, monkeypatch):
    plan = plan_of(views=32)
    free(10, monkeypatch)
    with pytest.raises(
        JustrightError, match=r"Try: free .*, set another --out or JUSTRIGHT_HOME, or .* views=2"
    ) as error:
        plan.check_disk()
    assert "32 weak views of each image in float16" in error.value.expected
    free(needed(plan), monkeypatch)
    plan.check_disk()
    free(10, monkeypatch)
    with pytest.raises(JustrightError, match=r"set another --out or JUSTRIGHT_HOME$"):
        plan_of(views="fresh").check_disk()


def test_cached_features_of_other_images_do_not_count(plan_of, home):
    before = [each for each in plan_of().files() if each.what == "features"]
    (home / "features").mkdir(parents=True)
    (home / "features" / "of-other-images.npy").write_bytes(bytes(10**6))
    assert [each for each in plan_of().files() if each.what == "features"] == before
    assert len({each.n_missing for each in before}) == 1, "in the run, and in the cache"
    assert min(each.n_missing for each in before) > 0


def test_stored_views_need_no_disk_unless_their_key_is_damaged(problem, backbone, plan_of, home, tmp_path):
    spec = RunSpec(scale="small", settings=SETTINGS, backbone="glyph_vit", n_target=22)
    Run(problem, spec, tmp_path / "run", backbone).all()
    assert not any(each.n_missing for each in plan_of(views=4).files() if each.stage == "views")
    for key in (home / "banks").glob("*/key.json"):
        key.write_text("[]")
    lacking = sum(each.n_missing for each in plan_of(views=4).files() if each.stage == "views")
    assert lacking == sum(banks(plan_of(views=4)).values())
