"""Curves for TensorBoard, for those who have it: `pip install 'justright[tensorboard]'`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from justright.errors import JustrightError


class CurveWriter:
    """Writes the record of each epoch where TensorBoard finds it."""

    def __init__(self, folder: Path):
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise JustrightError(
                "TensorBoard is not installed",
                advice="pip install 'justright[tensorboard]'; metrics.jsonl has the same numbers",
            ) from error
        self._writer: Any = SummaryWriter(str(folder))

    def write(self, record: Mapping[str, Any]) -> None:
        """One point on each curve."""
        epoch = int(record["epoch"])
        for name, value in record.items():
            if name != "epoch":
                self._writer.add_scalar(name, value, epoch)
        self._writer.flush()
