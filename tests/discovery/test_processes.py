from __future__ import annotations

import json
import socket

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from tests.discovery.elastic import KILLED_AT, N_STEPS
from tests.discovery.tiny import backbone_of_noise, drawn_images, drawn_split, final_bytes, learned, newest, records
from tests.discovery.together import LOW_RATE, METHODS
from tests.forked_programs import Program

from justright.discovery.processes import Processes, joined_processes
from justright.utils.errors import JustrightError


def start(root, **environment):
    return Program("-m", "tests.discovery.together", root, more=environment)


def start_two(root):
    """Two processes with the environment that torchrun would set."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    environment = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    return [start(root, **environment, RANK=str(rank)) for rank in range(2)]


def assert_succeeds(program):
    ended = program.end()
    assert ended.code == 0, ended.err[-20000:]


def test_two_processes_match_one(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for number in range(5):
        (tmp_path / "files").mkdir(exist_ok=True)
        Image.new("RGB", (4, 4), (number, 0, 0)).save(tmp_path / "files" / f"{number}.png")
    for each in [start(one), *start_two(two)]:
        assert_succeeds(each)
    for name in METHODS:
        for alone, together in zip(records(one / name), records(two / name), strict=True):
            assert together == pytest.approx(alone, rel=1e-5, abs=1e-5), name
        first, second = load_file(newest(one / name)), load_file(newest(two / name))
        assert first.keys() == second.keys()
        for key in first:
            torch.testing.assert_close(second[key], first[key], rtol=1e-3, atol=1e-4)
        assert (two / f"{name}-0.txt").read_text() == (two / f"{name}-1.txt").read_text()
    assert len(list((two / "simgcd" / "checkpoint").glob("*.damaged"))) == 1
    for rank in range(2):
        message = (two / f"refused-{rank}.txt").read_text()
        assert "a batch of 7 for 2 processes" in message
        assert "another batch_size" in message
    read_alone, *read = (json.loads(file.read_text()) for file in (one / "read-0.json", *sorted(two.glob("read-*"))))
    assert [sorted(rank["hashed"]) for rank in read] == [["0.png", "2.png", "4.png"], ["1.png", "3.png"]]
    assert_each_reads_its_share(read_alone, *read)
    assert [(two / f"notes-{rank}.txt").read_text() for rank in range(2)] == ["", ""]  # of one clock
    assert_only_two_processes_resume(two)
    for part in ("heads first/heads", "heads first"):
        first, second = load_file(newest(one / part)), load_file(newest(two / part))
        for key in first:
            torch.testing.assert_close(second[key], first[key], rtol=1e-3, atol=1e-4)


def assert_each_reads_its_share(alone, *ranks):
    """The first process checks the bank for all; each reads its part of every batch, in all its views."""
    assert [rank["checked"] for rank in ranks] == [alone["checked"], 0]
    assert alone["checked"] > 0
    # a single process also trains where two processes raise, and computes the features after that training
    refused = drawn_split()
    n_plain = sum(alone["plain"]) - len(refused.labeled) - len(refused.unlabeled)
    first, second = (sum(rank["plain"]) for rank in ranks)
    assert first + second == n_plain
    assert 0.3 < first / n_plain < 0.7
    n_batches = len(ranks[0]["rows"])
    for whole, *parts in zip(alone["rows"][:n_batches], *(rank["rows"] for rank in ranks), strict=True):
        half = len(whole) // 2
        n_views = 2 if whole[:half] == whole[half:] else 1  # the teacher of muGCD sees one
        of_views = [np.reshape(part, (n_views, -1)) for part in parts]
        assert np.concatenate(of_views, axis=1).ravel().tolist() == whole


def assert_only_two_processes_resume(two):
    split, backbone = drawn_split(), backbone_of_noise()
    with pytest.raises(JustrightError, match=r"(?s)number of processes .*: 2 before, 1 now.*--nproc-per-node 2"):
        learned("simgcd", split, backbone, two / "banks", two / "stopped", **LOW_RATE)
    again = learned("simgcd", split, backbone, two / "banks", two / "simgcd", **LOW_RATE)  # finished
    assert repr(again.labels_.tolist()) == (two / "simgcd-0.txt").read_text()


def test_killed_process_restarts_with_an_identical_result(tmp_path):
    assert_succeeds(Program("-m", "tests.discovery.elastic", tmp_path, more={"GLOO_SOCKET_IFNAME": "lo"}))
    assert final_bytes(tmp_path / "killed") == final_bytes(tmp_path / "uninterrupted")
    assert records(tmp_path / "killed") == records(tmp_path / "uninterrupted")
    assert (tmp_path / "labels-0.txt").read_text() == (tmp_path / "labels-1.txt").read_text()
    assert not (tmp_path / "steps-0-0.txt").exists()  # the first attempt was killed before its end
    left = int((tmp_path / "steps-1-0.txt").read_text())
    assert N_STEPS - KILLED_AT - 1 <= left <= N_STEPS - KILLED_AT + 1  # finished steps are not repeated


def test_process_takes_its_share_of_a_batch():
    processes = Processes()
    assert processes.share(7) == slice(0, 7)
    processes.n, processes.rank = 3, 1
    assert processes.share(6) == slice(2, 4)
    with pytest.raises(JustrightError, match=r"(?s)a batch of 7 for 3 processes.*multiple of the number"):
        processes.share(7)


@pytest.mark.parametrize(
    ("n_rows", "n", "expected"),
    [(20, 2, [(0, 8), (8, 20)]), (3, 2, [(0, 0), (0, 3)]), (0, 1, [(0, 0)])],
)
def test_parts_are_whole_blocks_and_cover_every_row(n_rows, n, expected):
    processes = Processes()
    processes.n = n
    assert [(part.start, part.stop) for part in processes.parts(n_rows, 8)] == expected


def test_single_process_communicates_nothing(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    processes, rows = Processes(), torch.ones(2, 3, 4)
    assert processes.is_first
    assert processes.gather(rows) is rows
    processes.sum_gradients([torch.nn.Parameter(rows)])
    assert processes.in_turn(lambda: 5) == 5
    processes.hash_together(drawn_images([0]))
    with joined_processes("cpu") as found:
        assert found.n == 1
