"""What a training says of each epoch: lines of metrics.jsonl, and curves for those who have TensorBoard."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from justright.discovery.processes import Processes
from justright.errors import JustrightError
from justright.files import parsed_json, write_text


class EpochRecords:
    """One line an epoch in metrics.jsonl, and a point on each curve of TensorBoard if asked.

    Without a folder, and in all processes but the first, nothing is written.
    """

    def __init__(self, folder: Path | None, tensorboard: bool = False):
        self.path = folder / "metrics.jsonl" if folder and Processes().is_first else None
        self.curves = _summary_writer(self.path.parent / "tensorboard") if self.path and tensorboard else None

    def write(self, record: Mapping[str, Any]) -> None:
        """Add the record of an epoch."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        if self.curves is not None:
            for name in record.keys() - {"epoch"}:
                self.curves.add_scalar(name, record[name], record["epoch"])
            self.curves.flush()

    def keep_before(self, epoch: int) -> None:
        """Drop lines that the checkpoint does not know of, for their epochs come again, and lines that a kill tore."""
        if self.path is not None and self.path.exists():
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
            write_text(self.path, "".join(f"{line}\n" for line in lines if _is_record_before(line, epoch)))


def _is_record_before(line: str, epoch: int) -> bool:
    try:
        return bool(parsed_json(line)["epoch"] < epoch)
    except (ValueError, KeyError, TypeError):
        return False


def _summary_writer(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise JustrightError(
            "TensorBoard is not installed",
            advice="pip install 'justright[tensorboard]'; metrics.jsonl has the same numbers",
        ) from error
    return SummaryWriter(str(folder))
