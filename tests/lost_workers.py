"""Engines for tests, and images that kill the worker that reads them first."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest
from tests.deadly_work import die_once

from justright.data.image_set import ImageSet
from justright.data.readers import FolderReader

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'justright[ray]'"
)
RAY = pytest.param("ray", marks=needs_ray)
EVERY_ENGINE = ["local", "processes", RAY]
FAR_ENGINES = ["processes", RAY]
"""Engines whose workers are other processes."""


class DeadlyReader(FolderReader):
    """Kills the first worker that hashes an image, and the first that decodes one."""

    def __init__(self, root: Path, marks: Path):
        super().__init__(root)
        self.marks, self.parent = marks, os.getpid()

    def content_id(self, path: str) -> str:
        die_once(self.marks / "hashed", self.parent)
        return super().content_id(path)

    def image(self, path: str) -> Any:
        die_once(self.marks / "decoded", self.parent)
        return super().image(path)


def deadly(images: ImageSet, marks: Path) -> ImageSet:
    """The same images of a folder behind a deadly reader."""
    marks.mkdir()
    ((source, reader),) = images.readers.items()
    assert isinstance(reader, FolderReader)
    return ImageSet(images.table, {source: DeadlyReader(reader.root, marks)})
