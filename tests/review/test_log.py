from __future__ import annotations

import os
import subprocess
import sys
import threading
import zlib

import pytest

from justright.review.actions import Keep, LogLine
from justright.review.log import Log, read_count, with_checksum, write_count
from justright.review.open_review import OpenReview
from justright.utils.errors import DataError


def keep(seq, cluster=0):
    return LogLine(seq=seq, at="2026-01-01T00:00:00Z", by="anna", id=f"{seq:016x}", action=Keep(cluster=cluster))


def written(path, n=3):
    log = Log(path, "f" * 32)
    for seq in range(1, n + 1):
        with log.writing() as news:
            assert news == []
            log.append(keep(seq))
    return log


def test_log_reads_lines_in_order(tmp_path):
    written(tmp_path / "review" / "log.jsonl")
    lines = Log(tmp_path / "review" / "log.jsonl", "f" * 32).new_lines()
    assert lines == [keep(1), keep(2), keep(3)]


@pytest.mark.parametrize("n_cut", range(1, 60, 7))
def test_log_continues_after_an_incomplete_last_line(tmp_path, n_cut):
    path = tmp_path / "log.jsonl"
    write_count(written(path).saved, 2)  # killed before the third was answered
    whole = path.read_bytes()
    path.write_bytes(whole[:-n_cut])
    log = Log(path, "f" * 32)
    lines = log.new_lines()
    n = 3 if n_cut == 1 else 2  # only the line break is gone: the action is whole
    assert lines == [keep(seq) for seq in range(1, n + 1)]
    before = path.read_bytes()
    with log.writing():
        log.append(keep(n + 1, cluster=7))
    assert path.read_bytes().startswith(before), "what was there was rewritten"
    assert Log(path, "f" * 32).new_lines()[n:] == [keep(n + 1, cluster=7)]


def test_zeros_after_a_power_cut_are_skipped(tmp_path):
    path = tmp_path / "log.jsonl"
    written(path, 2)
    with path.open("ab") as file:
        file.write(b"\0" * 100)
    log = Log(path, "f" * 32)
    assert len(log.new_lines()) == 2
    with log.writing():
        log.append(keep(3))
    assert len(Log(path, "f" * 32).new_lines()) == 3


def test_action_is_flushed_before_it_is_confirmed(tmp_path, monkeypatch):
    """A power cut may follow the confirmation. Other tests run without flushing."""
    log, done = written(tmp_path / "log.jsonl", 1), []
    monkeypatch.setattr(os, "fsync", lambda number: done.append((os.fstat(number).st_ino, read_count(log.saved))))
    with log.writing():
        log.append(keep(2))
    assert done[0] == (log.path.stat().st_ino, 1), "the log itself is flushed, and first"
    assert read_count(log.saved) == 2


def test_a_new_log_is_on_disk_with_its_folder(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda number: flushed.append(os.fstat(number).st_ino))
    with Log(tmp_path / "log.jsonl", "f" * 32).writing():
        pass
    assert {(tmp_path / "log.jsonl").stat().st_ino, tmp_path.stat().st_ino} <= set(flushed)


def test_log_is_created_with_its_header(tmp_path, monkeypatch):
    path = tmp_path / "review" / "log.jsonl"
    made = []
    monkeypatch.setattr(os, "write", lambda *_: made.append(path.read_bytes()) or 1 / 0)  # the first action
    log = Log(path, "f" * 32)
    with pytest.raises(ZeroDivisionError), log.writing():
        log.append(keep(1))
    assert made == [path.read_bytes()]
    assert made[0].endswith(b"\n")
    monkeypatch.undo()
    assert sorted(each.name for each in path.parent.iterdir()) == ["log.jsonl", "log.lock", "saved.json"]
    assert Log(path, "f" * 32).new_lines() == []
    with log.writing():
        log.append(keep(1))
    assert Log(path, "f" * 32).new_lines() == [keep(1)]


def test_kill_during_creation_leaves_no_file(tmp_path, monkeypatch):
    path = tmp_path / "log.jsonl"
    monkeypatch.setattr(os, "replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError), Log(path, "f" * 32).writing():
        pass
    monkeypatch.undo()
    assert not path.exists()
    assert len(written(path).new_lines()) == 0
    assert len(Log(path, "f" * 32).new_lines()) == 3


def test_a_read_only_review_is_read(tmp_path):
    written(tmp_path / "log.jsonl")
    (tmp_path / "log.lock").unlink(missing_ok=True)
    tmp_path.chmod(0o500)
    try:
        assert len(Log(tmp_path / "log.jsonl", "f" * 32).new_lines()) == 3
        assert not (tmp_path / "log.lock").exists()
    finally:
        tmp_path.chmod(0o700)


def test_a_reader_waits_for_a_line_that_is_being_written(tmp_path):
    path = tmp_path / "log.jsonl"
    written(path, 2)
    whole, reader = path.read_bytes(), Log(path, "f" * 32)
    write_count(path.with_name("saved.json"), 1)  # the second action is not confirmed before it is written whole
    for n_bytes in range(len(whole) - 40, len(whole)):
        path.write_bytes(whole[:n_bytes])
        assert len(reader.new_lines()) <= 1
    path.write_bytes(whole)
    reader.new_lines()
    assert reader.seq == 2


@pytest.mark.parametrize("lost", ["bytes", "a line", "all actions", "everything", "the file", "a bit", "its own line"])
@pytest.mark.parametrize("is_open", [False, True])
def test_log_missing_a_confirmed_action_is_rejected(tmp_path, lost, is_open):
    path = tmp_path / "log.jsonl"
    log = written(path)
    log = log if is_open else Log(path, "f" * 32)
    header, first, second, third = path.read_bytes().splitlines(keepends=True)
    left = {
        "bytes": header + first + second + third[:-9],
        "a line": header + first + second,
        "all actions": header,
        "everything": b"",
        "a bit": header + first + second + third.replace(b"keep", b"keeq"),
        "its own line": first + second + third,
    }
    path.write_bytes(left[lost]) if lost in left else path.unlink()
    if is_open and lost == "a bit":  # of the same length: it has read these lines already
        assert log.new_lines() == []
        log = Log(path, "f" * 32)
    for _ in range(2):  # also the second time
        with pytest.raises(DataError, match=r"log\.jsonl"):
            log.new_lines()
        with pytest.raises(DataError, match=r"log\.jsonl"), log.writing():
            pass
    path.write_bytes(header + first + second + third)
    assert len(Log(path, "f" * 32).new_lines()) == 3


@pytest.mark.parametrize(
    "damage", [b"", b"x", b"[]", b"{}", with_checksum({"saved": "3"}), with_checksum({}), b"\0" * 30]
)
def test_damaged_count_warns_and_is_rewritten(tmp_path, damage, caplog):
    log = written(tmp_path / "log.jsonl")
    log.saved.write_bytes(damage)
    log = Log(tmp_path / "log.jsonl", "f" * 32)
    assert len(log.new_lines()) == 3
    assert "saved.json is damaged" in caplog.text
    with log.writing():
        log.append(keep(4))
    assert read_count(log.saved) == 4


def test_log_without_count_is_read(tmp_path):
    """The log was copied without its count."""
    path = tmp_path / "log.jsonl"
    written(path).saved.unlink()
    whole = path.read_bytes()
    assert len(Log(path, "f" * 32).new_lines()) == 3
    path.write_bytes(whole[:-9])
    assert len(Log(path, "f" * 32).new_lines()) == 2
    path.write_bytes(whole[:-9] + b"\n")
    with pytest.raises(DataError, match="damaged line after action 2"):
        Log(path, "f" * 32).new_lines()


def test_a_line_lost_in_the_middle_is_refused(tmp_path):
    path = tmp_path / "log.jsonl"
    written(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], *lines[3:]]))
    with pytest.raises(DataError, match="jumps from action 1 to 3"):
        Log(path, "f" * 32).new_lines()


def test_a_line_changed_by_hand_is_refused(tmp_path):
    path = tmp_path / "log.jsonl"
    written(path)
    path.write_bytes(path.read_bytes().replace(b"0000000000000002", b"000000000000000f"))
    with pytest.raises(DataError, match="jumps from action 1 to 3"):
        Log(path, "f" * 32).new_lines()


def test_a_log_of_other_predictions_is_refused(tmp_path):
    written(tmp_path / "log.jsonl")
    with pytest.raises(DataError, match="other predictions"):
        Log(tmp_path / "log.jsonl", "e" * 32).new_lines()


def test_a_log_that_became_shorter_is_refused(tmp_path):
    path = tmp_path / "log.jsonl"
    log = written(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DataError, match="shorter"):
        log.new_lines()


def test_a_full_disk_leaves_the_review_as_it_was(opened, run, say, monkeypatch):
    say(opened, "keep", cluster=0)
    real = os.write

    def full(file, data):
        real(file, bytes(data[:9]))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        say(opened, "keep", cluster=1)
    monkeypatch.setattr(os, "write", real)
    assert opened.state.seq == 1
    say(opened, "keep", cluster=2)
    again = OpenReview(run).state
    assert [entry.line.action.cluster for entry in again.entries] == [0, 2]


def test_concurrent_writers_lose_nothing(run, say):
    code = (
        "import sys; from pathlib import Path; from justright.runs.run_folder import RunFolder;"
        "from justright.review.actions import Keep; import secrets;"
        "from justright.review.actions import Request;"
        "from justright.review.open_review import OpenReview\n"
        "opened = OpenReview(RunFolder.open(Path(sys.argv[1])))\n"
        "for n in range(25):\n"
        "    opened.act(Request(id=secrets.token_hex(8), base=0, reviewer=sys.argv[2], action=Keep(cluster=n % 9)))"
    )
    others = [subprocess.Popen([sys.executable, "-c", code, str(run.path), name]) for name in ("ben", "cleo")]
    opened = OpenReview(run)
    threads = [
        threading.Thread(target=lambda who=who: [say(opened, "keep", by=who, cluster=n) for n in range(9)])
        for who in ("anna", "dan", "eve")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [other.wait(60) for other in others] == [0, 0]
    state = OpenReview(run).state
    assert state.seq == 2 * 25 + 3 * 9
    assert {entry.line.by for entry in state.entries} == {"anna", "ben", "cleo", "dan", "eve"}
    with opened.reading() as caught_up:
        assert caught_up.seq == state.seq


WITHOUT_FCNTL = """
import sys; sys.modules["fcntl"] = None  # as on Windows
from pathlib import Path
from justright.runs.run_folder import RunFolder
from justright.review.actions import Request
from justright.review.actions import Keep
from justright.review.findings import findings
from justright.review.open_review import OpenReview
from justright.review.log import with_checksum
run = RunFolder.open(Path(sys.argv[1]))
assert findings(run) is None
OpenReview(run).act(Request(id="ab" * 8, base=0, reviewer="anna", action=Keep(cluster=0)))
assert findings(run).by_status["kept"] == 1
"""


def test_review_works_without_fcntl(run, say):
    subprocess.run([sys.executable, "-c", WITHOUT_FCNTL, str(run.path)], check=True)
    opened = OpenReview(run)
    assert opened.state.status(0) == "kept"
    say(opened, "keep", cluster=1)
    assert OpenReview(run).state.seq == 2


def test_a_log_of_an_earlier_version_is_read(opened, run):
    """Lines with checksums as version 1 wrote them."""
    opened.folder.mkdir()
    actions = [
        '{"do":"keep","cluster":0}',
        '{"do":"name","cluster":1,"name":"Größe"}',
        f'{{"do":"part","cluster":2,"parts":[[{opened.state.rows_of(2)[0]}]]}}',
        '{"do":"undo","target":3}',
    ]
    predictions = opened.log.header["predictions"]
    lines = [f'{{"format":"justright review 1","predictions":"{predictions}"']
    for seq, action in enumerate(actions, start=1):
        lines.append(
            f'{{"seq":{seq},"at":"2026-01-01T00:00:00.000+00:00","by":"anna","id":"{seq:016x}","action":{action}'
        )
    lines_with_sum = [line.encode() + b',"crc":"%08x"}\n' % zlib.crc32(line.encode()) for line in lines]
    opened.log.path.write_bytes(b"".join(lines_with_sum))
    state = OpenReview(run).state
    assert [entry.line.action.do for entry in state.entries] == ["keep", "name", "part", "undo"]
    assert (state.status(0), state.labels[1].name) == ("kept", "Größe")
    assert state.group.tolist() == opened.state.group.tolist()
