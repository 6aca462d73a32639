"""Every command rejects a review with an empty or damaged log, and writes nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient
from tests.made_runs import make_run
from tests.review.acting import act

from justright.cli import main
from justright.review.actions import Keep, LogLine
from justright.review.findings import findings
from justright.review.open_review import OpenReview
from justright.review.server import make_app
from justright.runs.run_folder import RunFolder
from justright.utils.errors import DataError


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory) -> Path:
    run = make_run(tmp_path_factory.mktemp("reviewed") / "run", per_class=8)
    opened = OpenReview(run)
    for cluster in range(3):
        act(opened, "name", cluster=cluster, name=f"bird {cluster}")
    return run.path


@pytest.fixture
def run(reviewed, tmp_path) -> RunFolder:
    return RunFolder.open(Path(shutil.copytree(reviewed, tmp_path / "run")))


DAMAGE = {
    "empty": lambda data: b"",
    "a line break": lambda data: b"\n",
    "blanks": lambda data: b" \n\t \r\n  ",
    "zeros": lambda data: b"\0" * len(data),
    "garbage": lambda data: bytes(range(256)) * 4,
    "garbage lines": lambda data: b"garbage\n" * 9,
    "other JSON": lambda data: b'{"a": 1}\n[]\nnull\n',
    "half of the first line": lambda data: data[: data.index(b"\n") // 2],
    "half of the first line, ended": lambda data: data[: data.index(b"\n") // 2] + b"\n",
    "no first line": lambda data: data[data.index(b"\n") + 1 :],
    "a bit of the first line": lambda data: bytes([data[0] ^ 1]) + data[1:],
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("has_count", [True, False])
def test_empty_or_damaged_log_raises_in_every_command(run, damage, has_count, tmp_path):
    log = run.path / "review" / "log.jsonl"
    log.write_bytes(DAMAGE[damage](log.read_bytes()))
    if not has_count:
        (log.parent / "saved.json").unlink()
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    with pytest.raises(DataError) as refused:
        findings(run)
    assert str(log) in str(refused.value)
    assert "from a copy" in refused.value.advice
    for name, form in (
        ("labels.csv", "csv"),
        ("labels.parquet", "parquet"),
        ("set.parquet", "labeled"),
        ("f", "folders"),
    ):
        words = ["review", str(run.path), "--export", str(tmp_path / name), "--as", form]
        answer = CliRunner().invoke(main, words + (["--all"] if form in ("labeled", "folders") else []))
        assert (answer.exit_code, isinstance(answer.exception, SystemExit)) == (1, True)
        assert "log.jsonl" in answer.output.replace("\n", "")
        assert not (tmp_path / name).exists()
    assert CliRunner().invoke(main, ["review", str(run.path), "--port", "0"]).exit_code == 1
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before


def test_running_server_rejects_a_damaged_log(run):
    with TestClient(make_app(OpenReview(run))) as client:
        assert client.get("/status").status_code == 200
        log = run.path / "review" / "log.jsonl"
        whole = log.read_bytes()
        for damaged in (b"", whole[:99], b"garbage\n"):
            log.write_bytes(damaged)
            answers = [client.get("/status"), client.post("/export", json={"form": "csv"})]
            body = {"id": "ab" * 8, "base": 3, "reviewer": "anna", "action": {"do": "keep", "cluster": 0}}
            for answer in (*answers, client.post("/act", json=body)):
                assert answer.status_code == 422
                assert "log.jsonl" in answer.json()["error"]
            assert log.read_bytes() == damaged
        assert not (log.parent / "export").exists()
        log.write_bytes(whole)  # put back, it goes on
        assert client.post("/act", json=body).json()["seq"] == 4


def test_log_without_actions_can_be_opened(run):
    shutil.rmtree(run.path / "review")
    with OpenReview(run).log.writing():
        pass  # a kill here
    assert findings(run) is None
    opened = OpenReview(run)
    assert act(opened, "keep", cluster=0).line.seq == 1
    assert findings(run).by_status["kept"] == 1


def test_inconsistent_line_always_raises(run):
    opened, other = OpenReview(run), OpenReview(run)
    with other.log.writing():
        other.log.append(LogLine(seq=4, at="", by="anna", id="f" * 16, action=Keep(cluster=10**6)))
    for _ in range(3):  # what was read of it is no state to go on from
        with pytest.raises(DataError, match="action 4 does not fit"):
            act(opened, "keep", cluster=1)
        with pytest.raises(DataError, match="action 4 does not fit"), opened.reading():
            pass
    with pytest.raises(DataError, match="action 4 does not fit"):
        OpenReview(run)
