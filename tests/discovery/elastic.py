"""Two trainings by two processes: one uninterrupted, and one whose second process is killed once.

The launcher of torchrun starts, watches and restarts the processes. It forks them here, because a fresh interpreter for
each would have to import torch again.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import torch
from tests.discovery.tiny import backbone_of_noise, drawn_split, learned
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from justright.discovery import loop
from justright.discovery.processes import joined_processes

N_STEPS = 12
KILLED_AT = 5
SETTINGS = {"n_epochs": 3, "n_steps": 4}


def train(root):
    torch.set_num_threads(1)
    loop.CHECKPOINT_SECONDS = -1.0  # after each step
    attempt, n_done = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), 0

    def track(steps, total, what):
        nonlocal n_done
        for step in steps:
            yield step
            n_done += what.startswith("training")
            if attempt == 0 and processes.rank == 1 and n_done == KILLED_AT:
                os.kill(os.getpid(), signal.SIGKILL)

    with joined_processes("cpu") as processes:
        split, backbone = drawn_split(), backbone_of_noise()
        learned("simgcd", split, backbone, root / "banks", root / "uninterrupted", **SETTINGS)
        model = learned("simgcd", split, backbone, root / "banks", root / "killed", progress=track, **SETTINGS)
        (root / f"labels-{processes.rank}.txt").write_text(repr(model.labels_.tolist()))
        (root / f"steps-{attempt}-{processes.rank}.txt").write_text(str(n_done))


if __name__ == "__main__":
    as_torchrun = LaunchConfig(
        min_nodes=1, max_nodes=1, nproc_per_node=2, max_restarts=1, start_method="fork",
        rdzv_backend="c10d", rdzv_endpoint="localhost:0", local_addr="localhost", run_id="elastic",
    )  # fmt: skip
    elastic_launch(as_torchrun, train)(Path(sys.argv[1]))
