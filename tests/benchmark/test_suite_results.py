from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.benchmark.test_suite import TINY

from justright.benchmark.problems import images_fingerprint, problem_of
from justright.benchmark.results import (
    RESULTS,
    all_settings,
    append_result,
    default_changes,
    fingerprint,
    missing_runs,
    read_results,
    remarks,
    suite_results,
)
from justright.benchmark.suite import read_suite
from justright.data import glyph_set
from justright.data.folder import write_tree
from justright.discovery import gcd
from justright.runs.spec import RunSpec
from justright.utils.errors import DataError
from justright.utils.hashing import signed


@pytest.fixture
def suite(tmp_path):
    """Two problems, the second one in a folder of the data."""
    place = 'target = "glyphs:per_class=4,scripts=digits"'
    (tmp_path / "tiny.toml").write_text(TINY.replace(place, 'target = "{data}/digits"'))
    return read_suite(tmp_path / "tiny.toml")


@pytest.fixture
def data(tmp_path):
    write_tree(glyph_set(2, ["digits"]), tmp_path / "data" / "digits")
    return tmp_path / "data"


def lines_of(suite, data, **more):
    """A line for every run, as a finished suite has them."""
    for problem in suite.problems:
        images = images_fingerprint(problem_of(problem, data))
        for setting, seed in suite.runs_of(problem):
            about = {"problem": problem.name, "setting": setting.name, "seed": seed, "images": images, "new": 0.5}
            about["print"] = fingerprint(suite, problem, setting, seed)
            about["made_with"] = all_settings(suite.spec(setting, seed, None, problem))
            yield about | more


def saved(lines, out):
    for line in lines:
        append_result(out / RESULTS, line)


def test_only_runs_without_a_line_are_missing(suite, data, tmp_path):
    lines = list(lines_of(suite, data))
    saved(lines[:-1], tmp_path)
    ((problem, runs),) = missing_runs(suite, tmp_path, data=data)
    assert (problem.name, [(setting.name, seed) for setting, seed in runs]) == ("digits", [("own", 1)])
    assert suite_results(suite, tmp_path) == lines[:-1]


def test_line_with_a_changed_default_is_shown_with_a_remark(suite, data, tmp_path):
    first, *rest = lines_of(suite, data)
    older = first | {"made_with": first["made_with"] | {"config.max_iter": 50, "config.gone": 1}}
    saved([older, *rest], tmp_path)
    ((problem, runs),) = missing_runs(suite, tmp_path, data=data)
    assert (problem.name, len(runs)) == ("hebrew", 1)
    assert len(suite_results(suite, tmp_path)) == 5
    assert sum(map(bool, default_changes(suite, suite_results(suite, tmp_path)))) == 1
    (message,) = remarks(suite, suite_results(suite, tmp_path))
    assert message.startswith("Made with other defaults: 1 line (config.max_iter was 50, is 100)")


def test_changed_rule_for_the_length_of_training_is_detected(monkeypatch):
    spec = RunSpec(method="gcd", backbone="efficientnet_lite0", scale="small")
    before = all_settings(spec)
    assert before["config.n_epochs"] is None
    assert before == all_settings(spec)
    monkeypatch.setattr(gcd, "MIN_STEPS_ON_ACTIVATIONS", 500)
    changed = {name for name, value in all_settings(spec).items() if before[name] != value}
    assert changed
    assert all(name.startswith("fitted_without_norm.") for name in changed)
    fixed = all_settings(replace(spec, settings={"n_epochs": 3}))
    assert not [name for name in fixed if name.startswith("fitted")], "no rule applies"


def test_a_new_option_keeps_lines_valid(suite, data, tmp_path):
    lines = [line | {"made_with": {"config.n_init": 2}} for line in lines_of(suite, data)]
    saved([{**lines[0], "made_with": {}}, *lines[1:]], tmp_path)
    assert missing_runs(suite, tmp_path, data=data) == []
    assert remarks(suite, suite_results(suite, tmp_path)) == []


def test_changed_images_are_detected(suite, data, tmp_path):
    saved(lines_of(suite, data), tmp_path)
    assert missing_runs(suite, tmp_path, data=data) == []
    next((data / "digits").rglob("*.png")).unlink()
    assert [(problem.name, len(runs)) for problem, runs in missing_runs(suite, tmp_path, data=data)] == [("digits", 2)]
    saved(list(lines_of(suite, data))[-1:], tmp_path)
    (message,) = remarks(suite, suite_results(suite, tmp_path))
    assert message.startswith("Lines of digits come from different images")


def test_torn_line_is_skipped_and_garbage_raises(tmp_path):
    path = tmp_path / RESULTS
    path.write_text(json.dumps(signed({"problem": "a", "print": "1"})) + '\n{"problem": "b", "pri')
    assert [line["problem"] for line in read_results(path)] == ["a"]
    path.write_text("hello\n")
    with pytest.raises(DataError, match="line 1"):
        read_results(path)


def test_flipped_bit_skips_the_line_with_a_warning(tmp_path, caplog):
    path = tmp_path / RESULTS
    line = {"problem": "a", "setting": "own", "seed": 0, "print": "1", "all": 0.5, "new": 0.25}
    good = json.dumps(signed(line)).encode()
    for place in range(len(good)):
        caplog.clear()
        path.write_bytes(good[:place] + bytes([good[place] ^ 1 << place % 8]) + good[place + 1 :] + b"\n")
        if not path.read_bytes().startswith(b'{"problem": '):
            with pytest.raises(DataError, match=RESULTS):
                read_results(path)
            continue
        assert read_results(path) == []
        assert f"{RESULTS}, line 1 is torn or damaged" in caplog.text


@pytest.mark.parametrize("data", [b"[]\n", b"[" * 100_000, b"\xff\n", b"\n", b"7\n", b'{"a": 1}\n'])
def test_other_content_raises_with_the_file_name(tmp_path, data):
    (tmp_path / RESULTS).write_bytes(data)
    with pytest.raises(DataError, match=RESULTS):
        read_results(tmp_path / RESULTS)
