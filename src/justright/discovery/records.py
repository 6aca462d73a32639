"""What a training says of each epoch: lines of metrics.jsonl, and curves for those who have TensorBoard."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from justright.discovery.processes import Processes
from justright.utils.errors import JustrightError
from justright.utils.files import write_text


class EpochRecords:
    """One line an epoch in metrics.jsonl, and a point on each curve of TensorBoard if asked.

    Without a folder, and in all processes but the first, nothing is written.
    """

    def __init__(self, folder: Path | None, tensorboard: bool = False):
        self.path = folder / "metrics.jsonl" if folder and Processes().is_first else None
        self.curves = expect_tensorboard()(str(self.path.parent / "tensorboard")) if self.path and tensorboard else None

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

    def begin_with(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Have the records that a checkpoint knows of and no others: later epochs come again, lines may be damaged."""
        if self.path is not None and (records or self.path.exists()):
            write_text(self.path, "".join(f"{json.dumps(record)}\n" for record in records))


def expect_tensorboard() -> Any:
    """What writes curves for TensorBoard; refused where the package is missing."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise JustrightError(
            "TensorBoard is not installed",
            advice="pip install 'justright[tensorboard]'; metrics.jsonl has the same numbers",
        ) from error
    return SummaryWriter
