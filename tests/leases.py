"""Files that other processes leave."""

from __future__ import annotations

from pathlib import Path

from justright.runs.run_folder import LOCK


def left_by_a_dead_process(path: Path) -> Path:
    """The name of the temporary file that a killed process leaves for a path."""
    return path.with_name(f".{path.name}.{'0' * 16}.tmp")


def owner_of(folder: Path) -> int:
    """The process that owns a folder; OSError or ValueError where there is none."""
    return int((folder / LOCK).read_text().partition("\n")[0])
