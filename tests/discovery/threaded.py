"""Trainings in processes of their own: one with one thread, and one killed with one thread and resumed with two."""

from __future__ import annotations

import logging
import signal
import sys
from pathlib import Path

import torch
from tests.discovery.killing import arm, in_a_child, wait
from tests.discovery.tiny import backbone_of_noise, drawn_split, learned

from justright.discovery import loop

SIZES = {"batch_size": 32, "hidden_dim": 256, "out_dim": 32, "n_epochs": 2}
"""Large enough for several threads to compute a product."""


def train(root, n_threads, moment=None):
    logging.basicConfig(filename=root.with_suffix(".log"))
    torch.set_num_threads(n_threads)
    loop.CHECKPOINT_SECONDS = -1.0
    options = {} if moment is None else arm(*moment)
    backbone = backbone_of_noise(embed_dim=32, num_heads=4)
    model = learned("gcd", drawn_split(per_class=16), backbone, root / "banks", root / "run", **options, **SIZES)
    assert torch.get_num_threads() == n_threads
    model.save(root / "model")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    assert wait(in_a_child(train, folder / "one", 1)) == 0
    assert wait(in_a_child(train, folder / "killed", 1, ("step", 2))) == -signal.SIGKILL
    assert wait(in_a_child(train, folder / "killed", 2)) == 0
