from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from justright.benchmark.claims import verdicts
from justright.benchmark.paper import paper_rows, paper_table
from justright.benchmark.problems import problem_of
from justright.benchmark.results import missing_runs, read_results
from justright.benchmark.runner import run_suite
from justright.benchmark.suite import PROFILES, Suite, read_suite, suite_names
from justright.benchmark.tables import text_tables
from justright.runs.spec import PUBLISHED_ENTROPY, config_of

TABLES = [name for name in suite_names() if read_suite(name).columns]
CONTROLS = ("tab2-controls", "tab4-controls")  # rows that the paper does not have
PRINTED = [name for name in TABLES if name.startswith("tab") and name not in ("taba9", *CONTROLS)]
SMALL = {"n_epochs": 1, "n_steps": 1, "batch_size": 8, "hidden_dim": 8, "out_dim": 4}


def tiny(suite: Suite, name: str = "") -> Suite:
    """One problem of few images, one setting, one seed, a step of training.

    If no setting is named it is the last one as a rival, without muGCD, which trains twice.
    """
    plain = [each for each in suite.settings if not each.is_guide and each.method != "mugcd"]
    last = next((each for each in suite.settings if each.name == name), plain[-1])
    problem = next(each for each in suite.problems if last.problems is None or each.name in last.problems)
    few = replace(problem, classes=4, per_class=4)
    run = dict(last.run) | {"settings": dict(last.run["settings"])}
    if last.method != "kmeans":
        run["settings"] |= SMALL
    if run.get("selector_params", {}).get("n_clusters") == 100:
        run["selector_params"] = {"n_clusters": 3}
    setting = replace(last, run=run, problems=(few.name,))
    return replace(suite, problems=(few,), settings=(setting,), seeds=(0,))


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """One run of each suite but the one that only counts, as one suite, so that they share network and views."""
    each_one = [tiny(read_suite(name, "glyphs")) for name in TABLES if name != "taba9"]
    problems = {suite.problems[0].name: suite.problems[0] for suite in each_one}
    settings = {}
    for suite in each_one:
        (own,) = suite.settings
        before = settings.get(own.name, own)
        settings[own.name] = replace(own, problems=tuple(dict.fromkeys([*before.problems, *own.problems])))
    whole = replace(each_one[0], problems=tuple(problems.values()), settings=tuple(settings.values()), is_probed=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUSTRIGHT_HOME", str(tmp_path_factory.mktemp("home")))
        return run_suite(whole, tmp_path_factory.mktemp("out"))


def test_every_table_and_figure_with_runs_has_a_suite():
    wanted = {*(f"tab{n}" for n in range(1, 7)), *(f"taba{n}" for n in range(1, 10)), "fig1", "fig3"}
    assert set(TABLES) == wanted | set(CONTROLS)


@pytest.mark.parametrize("name", [name for name in TABLES if name != "taba9"])
def test_tiny_run_of_each_suite_makes_its_table(name, lines):
    suite = tiny(read_suite(name, "glyphs"))
    wanted = suite.problems[0].name, suite.settings[0].name
    (line,) = [each for each in lines if (each["problem"], each["setting"]) == wanted]
    table = paper_table(suite, [line])
    (row,) = table.rows
    assert {group for _, group in row.cells} == set(suite.groups)
    judged = verdicts(suite, [line], lambda _: (suite, [line]))
    assert len(judged) == sum(claim.role != "guide" for claim in suite.claims)
    (shown,) = text_tables(table)
    assert suite.columns[wanted[0]] in shown.title


@pytest.mark.parametrize("name", ["mugcd: beta", "simgcd: beta, as a guide"])
def test_mugcd_and_guides_are_run_and_shown(name, tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    suite = tiny(read_suite("tab2", "glyphs"), name)
    (line,) = run_suite(suite, tmp_path / "out")
    assert line["setting"] == name
    assert (line["n_categories"] > line["n_target"]) == (name == "mugcd: beta"), "only rivals are categories too"
    table = paper_table(suite, [line])
    ((row, *_), *_) = [each.rows for each in text_tables(table)]
    assert row[0] == table.rows[0].name == {"m": "mugcd, beta", "s": "simgcd, beta (guide)"}[name[0]]
    assert table.rows[0].is_guide == ("guide" in name)


def test_table_of_data_sets_needs_no_runs(tmp_path):
    suite = read_suite("taba9", "glyphs")
    lines = run_suite(suite, tmp_path)
    assert lines[0]["labeled_images"] == 10 * 6
    assert not (tmp_path / "runs").exists()
    table = paper_table(suite, lines)
    (shown,) = text_tables(table)
    rows = {row[0]: row[1:] for row in shown.rows}
    assert rows["cub (here: armenian)"] == ("60", "1,500", "10", "100", "180", "4,500", "20", "200")
    assert [cell for cell in rows["aircraft (here: lao)"] if "?" in cell] == ["50?"], "it has 100 classes"
    assert "aircraft: FGVC-Aircraft has 100 classes, and half of them are labeled" in table.doubts


@pytest.mark.parametrize("name", PRINTED)
def test_full_scale_runs_exactly_the_rows_of_the_paper(name):
    suite = read_suite(name, "full").with_role("rival")
    ours = {
        (each.method, suite.printed_as.get(each.row, each.row), suite.columns[problem.name])
        for problem in suite.problems
        for each, _ in suite.runs_of(problem)
    }
    assert ours == {(row.method, row.selection, row.target) for row in paper_rows() if row.table == name}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", TABLES)
def test_every_run_has_valid_settings(name, profile):
    suite = read_suite(name, profile)
    for problem in suite.problems:
        for setting, seed in suite.runs_of(problem):
            if seed == (setting.seeds or suite.seeds)[0]:  # no setting depends on it
                config_of(suite.spec(setting, seed, 10, problem))


def test_full_scale_uses_published_settings():
    suite, seen = read_suite("tab2", "full").with_role("rival"), {}
    for problem in suite.problems:
        for setting, seed in suite.runs_of(problem):
            config = config_of(suite.spec(setting, seed, 10, problem))
            assert (config.held_out_share, config.n_init, config.max_iter) == (0.0, 100, 200)
            assert getattr(config, "views", "fresh") == "fresh"
            seen[setting.method, suite.columns[problem.name]] = getattr(config, "entropy_scale", None)
    assert [seen["simgcd", name] for name in ("cub", "cars", "aircraft", "dogs")] == [2.0, 1.0, 1.0, 2.0]
    assert seen["gcd", "cars"] is seen["kmeans", "cars"] is None


def test_suite_and_discover_use_the_same_entropy():
    suite = read_suite("taba9", "full")
    by_source = {each.target.partition(":")[0]: each.settings.get("entropy_scale") for each in suite.problems}
    assert {name: value for name, value in by_source.items() if value is not None} == PUBLISHED_ENTROPY


@pytest.mark.parametrize("profile", PROFILES)
def test_claims_name_existing_rows_and_suites(profile):
    for name in TABLES:
        suite = read_suite(name, profile)
        for claim in suite.claims:
            other = read_suite(claim.than_suite or name, profile)
            assert set(claim.better) <= {each.row for each in suite.settings}
            assert set(claim.than) <= {each.row for each in other.settings}
            assert set(claim.targets) <= set(suite.columns.values())


def test_tables_share_their_common_runs():
    def names(name):
        suite = read_suite(name, "glyphs")
        return {(problem.name, each.name) for problem in suite.problems for each, _ in suite.runs_of(problem)}

    assert len(names("tab5") & names("tab2")) == 3 * 4, "none and beta on three targets in both roles"
    assert names("fig3") < names("tab1")


RESULTS = Path(__file__).parents[2] / "docs" / "results"
COMMITTED = {  # by folder and profile: the runs of each suite, and how many of them have a line at least
    ("selection", None): {"selection": (462, 462)},
    ("selection-photos", None): {"selection-photos": (24, 24)},
    ("training", None): {"training": (185, 185)},
    ("training-photos", None): {"training-photos": (315, 299)},
    ("decisions", None): {"decisions": (168, 168)},
    ("controls", None): {"controls": (312, 312)},
    ("controls-photos", None): {"controls-photos": (195, 30)},
    ("doses", None): {"doses": (114, 114)},
    ("cub", None): {"cub": (120, 120)},
    ("cub-vit", None): {"cub-vit": (9, 9)},
    ("cub-methods", None): {"cub-methods": (30, 30)},
    ("paper-real", "real"): {
        "tab1": (72, 72),
        "tab2": (204, 204),
        "tab4": (204, 204),
        "tab5": (45, 45),
        "tab6": (45, 45),
        "fig1": (120, 120),
        "fig3": (60, 60),
        "tab2-controls": (72, 72),
        "tab4-controls": (72, 72),
    },
    ("paper-glyphs", "glyphs"): {
        "tab1": (72, 72),
        "tab2": (204, 204),
        "tab3": (48, 48),
        "tab4": (204, 204),
        "tab5": (45, 45),
        "tab6": (45, 45),
        "taba1": (54, 54),
        "taba2": (27, 27),
        "taba3": (36, 36),
        "taba4": (27, 27),
        "taba5": (27, 27),
        "taba6": (24, 24),
        "taba7": (18, 18),
        "taba8": (30, 30),
        "taba9": (9, 9),
        "fig1": (120, 120),
        "fig3": (60, 60),
        "tab2-controls": (72, 72),
        "tab4-controls": (72, 72),
    },
}


def test_every_folder_of_results_is_listed_above():
    assert {path.parent.name for path in RESULTS.glob("*/results.jsonl")} == {folder for folder, _ in COMMITTED}


@pytest.mark.parametrize(("folder", "profile"), COMMITTED)
def test_committed_results_are_valid_for_their_suites(folder, profile, monkeypatch):
    monkeypatch.setattr("justright.benchmark.results.read_results", cache(read_results))
    for name, (n_runs, n_there) in COMMITTED[folder, profile].items():
        suite = read_suite(name, profile)
        suite = suite.with_role("rival") if suite.columns else suite
        n_missing = sum(len(runs) for _, runs in missing_runs(suite, RESULTS / folder))
        assert sum(len(list(suite.runs_of(problem))) for problem in suite.problems) == n_runs, name
        assert n_runs - n_missing >= n_there, name


@pytest.mark.parametrize(("name", "n_old", "n_target"), [("tab1", 45, 375), ("tab2", 15, 225)])
def test_real_profile_uses_the_small_photo_sets(name, n_old, n_target, real_data):
    result = problem_of(read_suite(name, "real").problems[0], real_data)
    assert (len(result.own_classes), len(result.target), result.n_target_classes) == (n_old, n_target, n_old + 15)
