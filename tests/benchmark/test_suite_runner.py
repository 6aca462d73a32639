from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import suppress

import pytest
from tests.benchmark.test_suite import TINY
from tests.engines.lost_workers import FAR_ENGINES

from justright.benchmark.suite import read_suite
from justright.benchmark.suite_runner import RESULTS, failed_runs, read_results, run_suite, suite_results
from justright.engines import ENGINES
from justright.errors import DataError, DegenerateError, JustrightError
from justright.features import backbone
from justright.hashing import signed
from justright.runs.owner import LOCK
from justright.runs.run import Run


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
    """The folder of the suite after all of it was run by this process, and the lines that this gave."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "tiny.toml").write_text(TINY)
    return folder / "out", run_suite(read_suite(folder / "tiny.toml"), folder / "out")


def scores(lines):
    return [(line["problem"], line["setting"], line["seed"], line["all"], line["new"]) for line in lines]


def test_a_suite_leaves_a_line_a_run_and_is_not_run_twice(suite, whole):
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


def test_after_a_kill_only_what_is_missing_is_run_and_gives_the_same_scores(suite, whole, tmp_path):
    out, lines = whole
    (tmp_path / "cut").mkdir()
    kept = (out / RESULTS).read_text().splitlines()
    (tmp_path / "cut" / RESULTS).write_text("\n".join([*kept[:2], kept[2][:50]]))
    told = []

    def track(steps, total, what):
        told.append(total)
        yield from steps

    assert scores(run_suite(suite, tmp_path / "cut", track=track)) == scores(lines)
    assert told == [3]


def test_changed_settings_are_run_again(suite, tmp_path):
    run_suite(suite, tmp_path, only=("digits",))
    (tmp_path / "tiny.toml").write_text(TINY.replace("n_init = 2", "n_init = 3"))
    other = read_suite(tmp_path / "tiny.toml")
    assert suite_results(other, tmp_path) == []
    run_suite(other, tmp_path, only=("digits",))
    assert len(suite_results(other, tmp_path)) == len(suite_results(suite, tmp_path)) == 2


def test_several_problems_at_once_give_the_same_scores(suite, whole, tmp_path):
    assert scores(run_suite(suite, tmp_path, n_jobs=2)) == scores(whole[1])


@pytest.mark.parametrize("name", FAR_ENGINES)
def test_another_engine_gives_the_same_scores_though_a_worker_is_killed(suite, whole, tmp_path, name):
    lock = tmp_path / "far" / "runs" / "digits" / "own-0" / LOCK

    def kill():
        while not killed:
            with suppress(OSError, ValueError):  # not there, or not written yet
                os.kill(json.loads(lock.read_text())["process"], signal.SIGKILL)
                killed.append(name)
            time.sleep(0.01)

    killed: list[str] = []
    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with ENGINES[name](1) as engine:
        lines = run_suite(suite, tmp_path / "far", only=("digits",), engine=engine)
    assert killed, "nobody was killed"
    assert scores(lines) == scores(line for line in whole[1] if line["problem"] == "digits") != []


def test_an_error_in_a_process_is_told_and_ends_the_suite(tmp_path):
    (tmp_path / "bad.toml").write_text(TINY.replace("scripts=digits", "scripts=klingon"))
    with pytest.raises(JustrightError, match="klingon"):
        run_suite(read_suite(tmp_path / "bad.toml"), tmp_path / "out", n_jobs=2, only=("digits",))


def test_a_run_without_an_answer_leaves_a_line_and_the_others_go_on(suite, tmp_path, monkeypatch):
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
    assert (tmp_path / RESULTS).read_bytes() == before, "it is not tried again"


def test_a_setting_with_another_backbone_gets_it(tmp_path, monkeypatch):
    other = '[[settings]]\nname = "other"\nrun = { selector = "own", backbone = "twin" }\nseeds = [1]\n'
    (tmp_path / "tiny.toml").write_text(TINY + other)
    loaded, used = [], {}
    load, carry_out = backbone.load_backbone, Run.all

    def load_twin(name, *more):
        loaded.append(name)
        found = load("glyph_vit", *more)
        found.name = name
        return found

    def note(run, **options):
        used[run.folder.path.name] = run.backbone.name
        return carry_out(run, **options)

    monkeypatch.setattr(backbone, "load_backbone", load_twin)
    monkeypatch.setattr(Run, "all", note)
    run_suite(read_suite(tmp_path / "tiny.toml"), tmp_path, only=("digits",))
    assert used == {"own-0": "glyph_vit", "own-1": "glyph_vit", "other-1": "twin"}
    assert loaded == ["glyph_vit", "twin"], "each once"


def test_an_unknown_problem_is_refused(suite, tmp_path):
    with pytest.raises(DataError, match="no problem 'greek'"):
        run_suite(suite, tmp_path, only=("greek",))


def test_a_torn_line_is_left_out_and_garbage_refused(tmp_path):
    path = tmp_path / RESULTS
    path.write_text(json.dumps({"problem": "a", "print": "1"}) + '\n{"problem": "b", "pri')
    assert [line["problem"] for line in read_results(path)] == ["a"]
    path.write_text("hello\n")
    with pytest.raises(DataError, match="line 1"):
        read_results(path)


def test_a_damaged_line_is_left_out_and_said_whatever_bit_it_is(tmp_path, caplog):
    path = tmp_path / RESULTS
    line = {"problem": "a", "setting": "own", "seed": 0, "print": "1", "all": 0.5, "new": 0.25}
    good = json.dumps(signed(line)).encode()
    n_found = 0
    for place in range(len(good)):
        caplog.clear()
        path.write_bytes(good[:place] + bytes([good[place] ^ 1 << place % 8]) + good[place + 1 :] + b"\n")
        if not path.read_bytes().startswith(b'{"problem": '):
            with pytest.raises(DataError, match=RESULTS):
                read_results(path)
            continue
        found = [{name: each[name] for name in line if name in each} for each in read_results(path)]
        assert found == [line] or (found == [] and f"{RESULTS}, line 1 is torn or damaged" in caplog.text)
        n_found += len(found)
    assert n_found < 15, "only where the name of the checksum is hit"


@pytest.mark.parametrize("data", [b"[]\n", b"[" * 100_000, b"\xff\n", b"\n", b"7\n", b'{"a": 1}\n'])
def test_what_is_no_line_of_results_is_refused_by_name(tmp_path, data):
    (tmp_path / RESULTS).write_bytes(data)
    with pytest.raises(DataError, match=RESULTS):
        read_results(tmp_path / RESULTS)


def test_problems_are_dealt_out_to_devices_and_a_result_counts_on_every_device(suite, tmp_path, monkeypatch):
    used = []

    def note(suite, described, *more):
        used.append((described.name, suite.run.get("device")))
        return iter(())

    lines = run_suite(suite, tmp_path, only=("digits",))
    monkeypatch.setattr("justright.benchmark.suite_runner._run_problem", note)
    run_suite(suite, tmp_path, devices=("cuda:0", "cuda:1"))
    assert used == [("hebrew", "cuda:0")], "digits is done"
    assert suite_results(suite.with_run(device="cuda:1"), tmp_path) == lines
