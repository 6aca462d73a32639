"""A program for torchrun: train some methods, with as many processes as there are."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from tests.discovery.tiny import backbone_of_noise, drawn_split, guided_split, learned

from justright.discovery import loop
from justright.discovery.processes import Processes, joined_processes
from justright.errors import JustrightError

METHODS = ("simgcd", "xcon", "mugcd")
CALM = {"n_epochs": 3, "learning_rate": 0.01}
"""At a high rate a network of this size magnifies rounding a hundred times within a few steps."""


def train(root):
    split, backbone = drawn_split(), backbone_of_noise()
    for name in METHODS:
        folder = root / name
        split = drawn_split() if name == "simgcd" else guided_split()  # with a pool that guides and without
        learned(name, split, backbone, root / "banks", folder, **CALM)
        again = learned(name, split, backbone, root / "banks", folder, **CALM)  # finds itself trained already
        (root / f"{name}-{Processes().rank}.txt").write_text(repr(again.labels_.tolist()))
    split = drawn_split()
    try:
        learned("simgcd", split, backbone, root / "banks", None, n_epochs=1, batch_size=7)
    except JustrightError as error:
        (root / f"refused-{Processes().rank}.txt").write_text(str(error))
    if Processes().is_first:
        newest = max((root / "simgcd" / "checkpoint").glob("step-*"))
        newest.write_bytes(newest.read_bytes()[:1000])
    Processes().wait()
    learned("simgcd", split, backbone, root / "banks", root / "simgcd", **CALM)  # from the one before


def main():
    torch.set_num_threads(1)
    loop.CHECKPOINT_SECONDS = -1.0  # after each step
    with joined_processes("cpu"):
        train(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
