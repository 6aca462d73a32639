"""Where what is kept between runs lives: checkpoints and computed features. Nothing heavy is imported for it."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """Where checkpoints and caches live: JUSTRIGHT_HOME, or `.cache/justright` in the user's home."""
    return Path(os.environ.get("JUSTRIGHT_HOME") or Path.home() / ".cache" / "justright")
