from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.discovery.tiny import drawn_images, newest, records
from tests.discovery.together import METHODS, train

from justright.discovery import loop
from justright.discovery.processes import Processes, joined_processes
from justright.errors import JustrightError

ROOT = Path(__file__).parents[2]


def run_two(root):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    torchrun = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [sys.executable, "-m", *torchrun, "-m", "tests.discovery.together", str(root)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-20000:]


def test_two_processes_learn_what_one_learns(tmp_path, monkeypatch):
    one, two = tmp_path / "one", tmp_path / "two"
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)
    train(one)
    run_two(two)
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
        said = (two / f"refused-{rank}.txt").read_text()
        assert "a batch of 7 for 2 processes" in said
        assert "another batch_size" in said


def test_a_process_takes_its_part_of_a_batch():
    processes = Processes()
    assert processes.share(7) == slice(0, 7)
    processes.n, processes.rank = 3, 1
    assert processes.share(6) == slice(2, 4)
    with pytest.raises(JustrightError, match=r"(?s)a batch of 7 for 3 processes.*multiple of the number"):
        processes.share(7)


def test_alone_nothing_is_gathered_summed_or_waited_for(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    processes, rows = Processes(), torch.ones(2, 3)
    assert processes.is_first
    assert processes.gather(rows, dim=1) is rows
    processes.sum_gradients([torch.nn.Parameter(rows)])
    assert processes.in_turn(lambda: 5) == 5
    processes.hash_together(drawn_images([0]))
    with joined_processes("cpu") as found:
        assert found.n == 1
