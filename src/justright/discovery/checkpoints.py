"""Checkpoints of training: the newest two, each one file with a checksum, written atomically."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from justright.discovery.processes import Processes
from justright.utils.errors import DataError, JustrightError
from justright.utils.files import parsed_json, remove_leftovers, replacing, write_text
from justright.utils.hashing import hash_pieces
from justright.utils.settings import differences, differences_text

_log = logging.getLogger(__name__)

FORMAT = "justright checkpoint 1"
N_KEPT = 2  # a second one in case the newest is damaged
MOMENTUM, ASSIGNED = "momentum/", "assigned"  # names of tensors that only further steps need


@dataclass(frozen=True)
class Checkpoint:
    """Tensors by name, and the rest of the state as plain JSON values."""

    tensors: Mapping[str, Tensor]
    state: Mapping[str, Any]


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one training in a folder of their own."""

    folder: Path

    def save(self, number: int, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint and delete all but the newest two."""
        path = self.folder / f"step-{number:09d}.safetensors"
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in checkpoint.tensors.items()}
        state = json.dumps(checkpoint.state)
        about = {"format": FORMAT, "state": state, "checksum": checksum(tensors, state)}
        write_tensors(path, tensors, about)
        for old in self._files()[N_KEPT:]:
            old.unlink()
        return path

    def load(self) -> Checkpoint | None:
        """Load the newest intact checkpoint, with a warning if a newer one is damaged; None if there is none."""
        remove_leftovers(self.folder)  # of a killed process; another one of this training may be writing now
        files, damaged = self._files(), list[Path]()
        for path in files:
            try:
                checkpoint = _read(path)
            except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
                _log.warning("%s is damaged (%s); using the checkpoint before it", path, error)
                damaged.append(path)
                continue
            for each in damaged:  # only now: if all are damaged, the next start must still see them and raise
                each.rename(each.with_suffix(".damaged"))
            return checkpoint
        if files:
            raise DataError(
                f"every checkpoint in {self.folder} is damaged",
                expected="at least one intact checkpoint",
                advice="delete the folder to start again",
            )
        return None

    def finish(self) -> None:
        """Keep only the newest checkpoint, which the training has just written or read."""
        for path in (*self._files()[1:], *self.folder.glob("*.damaged")):
            path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("step-*.safetensors"), reverse=True)


def _read(path: Path) -> Checkpoint:
    with safe_open(path, framework="pt") as file:
        about = file.metadata() or {}
        if about["format"] != FORMAT:
            raise ValueError(f"format {about['format']!r}")
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if checksum(tensors, about["state"]) != about["checksum"]:
        raise ValueError("wrong checksum")
    return Checkpoint(tensors, parsed_json(about["state"]))


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str] | None = None) -> None:
    """Write a safetensors file atomically, with `about` in its header."""
    # as bytes: the temporary file of `save_file` would stay after a kill
    content = save(dict(tensors), metadata=None if about is None else dict(about))
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def checksum(tensors: Mapping[str, Tensor], state: str = "") -> str:
    """Hash tensors, names and state."""
    pieces: list[bytes | memoryview] = [state.encode()]
    for name, tensor in sorted(tensors.items()):
        pieces.append(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        pieces.append(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return hash_pieces(pieces)


def check_same_settings(before: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """Raise if the checkpoint was made with other settings; the error lists the differences."""
    if changes := differences(before, now):
        raise DataError(
            f"{folder} was trained with other settings:\n{differences_text(changes)}",
            expected="the same data, weights and settings",
            advice="another --out, or delete that folder to start again",
        )


class EpochRecords:
    """One line per epoch in metrics.jsonl, and optional TensorBoard curves.

    Without a folder, and in all processes but the first, nothing is written.
    """

    def __init__(self, folder: Path | None, tensorboard: bool = False):
        self.path = folder / "metrics.jsonl" if folder and Processes().is_first else None
        self.curves = expect_tensorboard()(str(self.path.parent / "tensorboard")) if self.path and tensorboard else None

    def write(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Write the records of all epochs so far. Lines of epochs that are trained again after a kill disappear."""
        if self.path is None or not (records or self.path.exists()):
            return
        write_text(self.path, "".join(f"{json.dumps(record)}\n" for record in records))
        if self.curves is not None and records:
            for name in records[-1].keys() - {"epoch"}:
                self.curves.add_scalar(name, records[-1][name], records[-1]["epoch"])
            self.curves.flush()


def expect_tensorboard() -> Any:
    """Return TensorBoard's SummaryWriter; raise if it is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise JustrightError(
            "TensorBoard is not installed",
            advice="pip install 'justright[tensorboard]'; metrics.jsonl has the same numbers",
        ) from error
    return SummaryWriter
