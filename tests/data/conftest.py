"""A small folder of clean photos."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.data.drawn_files import drawing, put


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes of three clean images."""
    for seed in range(6):
        put(tmp_path / "photos" / ("cat", "dog")[seed % 2] / f"{seed}.png", drawing(seed))
    return tmp_path / "photos"
