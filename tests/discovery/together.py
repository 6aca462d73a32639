"""A program for one process or several: train some methods, together if there are several processes."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import torch
from tests.discovery.tiny import Stopped, backbone_of_noise, drawn_split, guided_split, learned, stop_after

from justright.data import open_folder
from justright.data.readers import FolderReader
from justright.discovery import learner, loop
from justright.discovery.processes import Processes, joined_processes
from justright.features import cache
from justright.features.bank import ViewBank
from justright.utils.errors import JustrightError
from justright.utils.hashing import hash_bytes

METHODS = ("simgcd", "xcon", "mugcd", "cms", "selex")
LOW_RATE = {"n_epochs": 2, "learning_rate": 0.01}
"""At a high learning rate a network of this size magnifies rounding errors a hundred times within a few steps."""


def record_reads(reads):
    """Record which rows are read from banks, and how many files are compared with their checksum."""
    batch, is_intact, outputs = ViewBank.batch, cache.is_intact, loop.Training._outputs
    in_step = []

    def recorded_outputs(training, *step):
        in_step.append(step)
        result = outputs(training, *step)
        in_step.clear()
        return result

    def recorded_batch(bank, rows, views):
        if in_step:
            reads["rows"].append(rows.tolist())
        elif bank.n_views == 1:
            reads["plain"].append(len(rows))
        return batch(bank, rows, views)

    def recorded_check(path):
        reads["checked"] += 1
        return is_intact(path)

    ViewBank.batch, cache.is_intact, loop.Training._outputs = recorded_batch, recorded_check, recorded_outputs


def hashed_files(images):
    """The files that this process reads before it knows all content ids."""
    read, encoded = [], FolderReader.encoded
    FolderReader.encoded = lambda reader, path: read.append(path) or encoded(reader, path)
    Processes().hash_together(images)
    assert images.content_ids() == [hash_bytes(encoded(*images.readers.values(), path)) for path in images.paths]
    return read


def train(root):
    split, backbone = drawn_split(), backbone_of_noise()
    for name in METHODS:
        folder = root / name
        split = drawn_split() if name == "simgcd" else guided_split()  # with a pool that guides and without
        learned(name, split, backbone, root / "banks", folder, **LOW_RATE)
        again = learned(name, split, backbone, root / "banks", folder, **LOW_RATE)  # trained already
        (root / f"{name}-{Processes().rank}.txt").write_text(repr(again.labels_.tolist()))
    split = drawn_split()
    if Processes().is_first:
        newest = max((root / "simgcd" / "checkpoint").glob("step-*"))
        newest.write_bytes(newest.read_bytes()[:1000])
    Processes().wait()
    learned("simgcd", split, backbone, root / "banks", root / "simgcd", **LOW_RATE)  # from the one before
    with suppress(Stopped):
        learned("simgcd", split, backbone, root / "banks", root / "stopped", progress=stop_after(2), **LOW_RATE)
    try:
        learned("simgcd", split, backbone, root / "banks", None, n_epochs=1, batch_size=7)
    except JustrightError as error:
        (root / f"refused-{Processes().rank}.txt").write_text(str(error))


def train_heads_first(root):
    settings = LOW_RATE | {"n_epochs": 2, "heads_first": 50}
    learned("mugcd", guided_split(), backbone_of_noise(), root / "banks", root / "heads first", **settings)


def train_by_other_clocks(root, rank):
    """The clock of the second process runs a thousand times as fast as that of the first."""
    ticks = count(step=1000**rank)
    loop.time = SimpleNamespace(monotonic=lambda: float(next(ticks)))
    in_time = LOW_RATE | {"n_epochs": 8, "steady_share": 0.5, "n_steps": 1, "minutes": 1.0}
    method = learned("simgcd", drawn_split(), backbone_of_noise(), root / "banks", root / "in time", **in_time)
    (root / f"notes-{rank}.txt").write_text("".join(method.notes_))


def main():
    torch.set_num_threads(1)
    loop.CHECKPOINT_SECONDS = -1.0  # after each step
    learner.FEATURE_ROWS = 8
    reads = {"rows": [], "plain": [], "checked": 0}
    record_reads(reads)
    with joined_processes("cpu") as processes:
        reads["hashed"] = hashed_files(open_folder(Path(sys.argv[1]).parent / "files"))
        train(Path(sys.argv[1]))
        (Path(sys.argv[1]) / f"read-{processes.rank}.json").write_text(json.dumps(reads))
        train_heads_first(Path(sys.argv[1]))
        train_by_other_clocks(Path(sys.argv[1]), processes.rank)


if __name__ == "__main__":
    main()
