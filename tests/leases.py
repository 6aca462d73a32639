"""Names of temporary files and leases, as other processes write them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from justright.runs.owner import LOCK

NAME = "from justright.utils.locks import writer_name; print(writer_name())"


def left_by_a_dead_process(path: Path) -> Path:
    """What a process of this machine that has ended would have called its temporary file for a path."""
    done = subprocess.run([sys.executable, "-c", NAME], capture_output=True, text=True, check=True)
    return path.with_name(f".{path.name}.{done.stdout.strip()}.tmp")


def owner_of(folder: Path) -> int:
    """The process that owns a folder; OSError or ValueError where there is none."""
    return int((folder / LOCK).read_text().partition("\n")[0])
