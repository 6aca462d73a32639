from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import suppress

import pytest
from tests.benchmark.test_suite import TINY
from tests.leases import owner_of
from tests.lost_workers import FAR_ENGINES

from justright.benchmark.problems import images_fingerprint, problem_of
from justright.benchmark.results import RESULTS, failed_runs, missing_runs, suite_results
from justright.benchmark.runner import process_parts, run_suite
from justright.benchmark.suite import read_suite
from justright.features import backbone
from justright.runs.run import Run
from justright.utils.context import use
from justright.utils.errors import DataError, DegenerateError, JustrightError
from justright.utils.hashing import SIGNATURE, signed
from justright.utils.parallel import ENGINES


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUSTRIGHT_HOME", str(tmp_path_factory.getbasetemp() / "suite-home"))
        yield


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    return read_suite(tmp_path / "tiny.toml")


@pytest.fixture(scope="module")
def whole(home, tmp_path_factory):
    """The folder of the finished suite, and its lines."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "tiny.toml").write_text(TINY)
    return folder / "out", run_suite(read_suite(folder / "tiny.toml"), folder / "out")


def scores(lines):
    return [(line["problem"], line["setting"], line["seed"], line["all"], line["new"]) for line in lines]


def test_finished_runs_are_not_repeated(suite, whole):
    out, lines = whole
    assert [(line["problem"], line["setting"], line["seed"]) for line in lines] == [
        *(("hebrew", "own", 0), ("hebrew", "own", 1), ("hebrew", "rivals", 1)),
        *(("digits", "own", 0), ("digits", "own", 1)),
    ]
    assert all(0 < line["all"] <= 1 for line in lines)
    assert lines[0]["n_categories"] == 22
    assert lines[2]["n_categories"] == 22 + 9, "rivals are categories"
    before = (out / RESULTS).read_bytes()
    assert scores(run_suite(suite, out)) == scores(lines)
    assert (out / RESULTS).read_bytes() == before


def test_runs_missing_after_a_kill_get_the_same_scores(suite, whole, tmp_path):
    out, lines = whole
    (tmp_path / "cut").mkdir()
    kept = (out / RESULTS).read_text().splitlines()
    (tmp_path / "cut" / RESULTS).write_text("\n".join([*kept[:2], kept[2][:50]]))
    shown = []

    def track(steps, total, what):
        shown.append((what, total))
        yield from steps

    with use(progress=track):
        assert scores(run_suite(suite, tmp_path / "cut")) == scores(lines)
    assert ("runs of tiny", 3) in shown


def test_changed_settings_repeat_the_run(suite, done):
    (done / "tiny.toml").write_text(TINY.replace("n_init = 2", "n_init = 3"))
    other = read_suite(done / "tiny.toml")
    assert suite_results(other, done) == []
    run_suite(other, done, only=("digits",))
    assert len(suite_results(other, done)) == len(suite_results(suite, done)) == 2


@pytest.mark.usefixtures("forked_workers")
def test_two_jobs_give_the_same_scores(suite, whole, tmp_path):
    assert scores(run_suite(suite, tmp_path, n_jobs=2)) == scores(whole[1])


@pytest.fixture
def done(whole, tmp_path):
    """A folder with the finished runs on digits."""
    folder = tmp_path / "done"
    folder.mkdir()
    lines = (whole[0] / RESULTS).read_text().splitlines(keepends=True)
    (folder / RESULTS).write_text("".join(line for line in lines if json.loads(line)["problem"] == "digits"))
    return folder


def without_time(lines):
    return [{name: value for name, value in line.items() if name not in ("seconds", SIGNATURE)} for line in lines]


@pytest.mark.usefixtures("forked_workers")
def test_more_jobs_than_problems_give_the_same_lines(suite, whole, tmp_path):
    assert without_time(run_suite(suite, tmp_path, n_jobs=3)) == without_time(whole[1])


def test_seeds_are_split_only_with_more_jobs_than_problems(suite, tmp_path):
    todo = missing_runs(suite, tmp_path)
    assert process_parts(todo, 2) is todo
    parts = process_parts(todo, 3)
    assert [(problem.name, {seed for _, seed in runs}) for problem, runs in parts] == [
        *(("hebrew", {0}), ("digits", {0}), ("hebrew", {1}), ("digits", {1})),
    ]
    assert sum(len(runs) for _, runs in parts) == sum(len(runs) for _, runs in todo)


@pytest.mark.usefixtures("forked_workers")
@pytest.mark.parametrize("name", FAR_ENGINES)
def test_killed_worker_changes_no_score(suite, whole, tmp_path, name):
    folder = tmp_path / "far" / "runs" / "digits" / "own-0"

    def kill():
        while not killed:
            with suppress(OSError, ValueError):  # missing, or not written yet
                os.kill(owner_of(folder), signal.SIGKILL)
                killed.append(name)
            time.sleep(0.01)

    killed: list[str] = []
    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with ENGINES[name](1) as engine:
        lines = run_suite(suite, tmp_path / "far", only=("digits",), engine=engine)
    assert killed, "no worker was killed"
    assert scores(lines) == scores(line for line in whole[1] if line["problem"] == "digits") != []


@pytest.mark.usefixtures("forked_workers")
def test_error_in_a_process_ends_the_suite(tmp_path):
    (tmp_path / "bad.toml").write_text(TINY.replace("scripts=digits", "scripts=klingon"))
    with pytest.raises(JustrightError, match="klingon"):
        run_suite(read_suite(tmp_path / "bad.toml"), tmp_path / "out", n_jobs=2, only=("digits",))


def test_failed_run_writes_a_line_and_the_others_continue(suite, tmp_path, monkeypatch):
    carry_out = Run.all

    def refuse_rivals(run, **options):
        if run.spec.pool_role == "rival":
            raise DegenerateError("nothing to choose from")
        return carry_out(run, **options)

    monkeypatch.setattr(Run, "all", refuse_rivals)
    assert [line["setting"] for line in run_suite(suite, tmp_path)] == ["own"] * 4
    assert [(line["setting"], line["failed"]) for line in failed_runs(suite, tmp_path)] == [
        ("rivals", "nothing to choose from")
    ]
    before = (tmp_path / RESULTS).read_bytes()
    run_suite(suite, tmp_path)
    assert (tmp_path / RESULTS).read_bytes() == before, "it is not repeated"


def test_setting_with_another_backbone_uses_it(tmp_path, monkeypatch):
    other = '[[settings]]\nname = "other"\nrun = { selector = "own", backbone = "twin" }\nseeds = [1]\n'
    (tmp_path / "tiny.toml").write_text(TINY + other)
    loaded, used = [], {}
    load, carry_out = backbone.load_backbone, Run.all

    def load_twin(name, *more):
        loaded.append(name)
        result = load("glyph_vit", *more)
        result.name = name
        return result

    def note(run, **options):
        used[run.folder.path.name] = run.backbone.name
        return carry_out(run, **options)

    monkeypatch.setattr(backbone, "load_backbone", load_twin)
    monkeypatch.setattr(Run, "all", note)
    run_suite(read_suite(tmp_path / "tiny.toml"), tmp_path, only=("digits",))
    assert used == {"own-0": "glyph_vit", "own-1": "glyph_vit", "other-1": "twin"}
    assert loaded == ["glyph_vit", "twin"], "each once"


def test_an_unknown_problem_raises(suite, tmp_path):
    with pytest.raises(DataError, match="no problem 'greek'"):
        run_suite(suite, tmp_path, only=("greek",))


def test_problems_rotate_over_devices(suite, done, monkeypatch):
    used = []

    def note(task):
        suite, described, *_ = task
        used.append((described.name, suite.run.get("device")))
        return []

    lines = suite_results(suite, done)
    assert len(lines) == 2
    monkeypatch.setattr("justright.benchmark.runner._run_problem", note)
    run_suite(suite, done, devices=("cuda:0", "cuda:1"))
    assert used == [("hebrew", "cuda:0")], "digits is done"
    assert suite_results(suite.with_run(device="cuda:1"), done) == lines


@pytest.fixture
def stopped(suite, tmp_path, monkeypatch):
    """A run that was stopped after training, with a file in its folder that only a new start removes."""
    with monkeypatch.context() as patch:
        patch.setattr(Run, "_predict", lambda run, method: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run_suite(suite, tmp_path / "out", only=("digits",))
    folder = tmp_path / "out" / "runs" / "digits" / "own-0"
    (folder / "mark").touch()
    return folder


def test_stopped_run_is_resumed_with_the_same_scores(suite, tmp_path, stopped, done):
    lines = run_suite(suite, tmp_path / "out", only=("digits",))
    assert (stopped / "mark").exists()
    assert scores(lines) == scores(suite_results(suite, done)) != []


def test_files_of_other_settings_are_removed(tmp_path, stopped):
    other = tmp_path / "other" / "tiny.toml"
    other.parent.mkdir()
    other.write_text(TINY.replace("n_init = 2", "n_init = 3"))
    run_suite(read_suite(other), tmp_path / "out", only=("digits",))
    assert not (stopped / "mark").exists()


def test_damaged_run_is_restarted_with_a_warning(suite, tmp_path, stopped, caplog):
    about = json.loads((stopped / "run.json").read_text())
    about["spec"]["seed"] = 7
    (stopped / "run.json").write_text(json.dumps(signed(about)))
    assert len(run_suite(suite, tmp_path / "out", only=("digits",))) == 2
    assert not (stopped / "mark").exists()
    assert "is started again" in caplog.text


def test_line_has_settings_and_fingerprint_of_images(suite, done):
    line = suite_results(suite, done)[0]
    assert line["made_with"]["config.n_init"] == 2
    assert line["made_with"]["config.max_iter"] == 100, "defaults too"
    assert line["images"] == images_fingerprint(problem_of(suite.problems[1]))
    assert line["new_as_pool"] == 0.0


def test_unreadable_problem_raises_before_any_run(tmp_path, monkeypatch):
    monkeypatch.setattr(Run, "all", lambda *_, **__: pytest.fail("a run has started"))
    text = TINY.replace('name = "digits"\ntarget = "glyphs', 'name = "digits"\ntarget = "{data}/glyphs')
    assert text != TINY
    (tmp_path / "tiny.toml").write_text(text)
    with pytest.raises(DataError, match="needs the folder with the data"):
        run_suite(read_suite(tmp_path / "tiny.toml"), tmp_path / "out")
