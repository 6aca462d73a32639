"""Engines to test with, and things that kill -9 the worker that touches them first."""

from __future__ import annotations

import importlib.util
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from justright.data.image_set import ImageSet
from justright.data.readers import FolderReader

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'justright[ray]'"
)
RAY = pytest.param("ray", marks=needs_ray)
EVERY_ENGINE = ["local", "processes", RAY]
FAR_ENGINES = ["processes", RAY]
"""Those whose workers are other processes."""


def die_once(mark: Path, parent: int) -> None:
    """Kill this process unless it is the parent, or the mark says that somebody was killed already."""
    if os.getpid() != parent:
        try:
            mark.open("x").close()
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class DeadlyDouble:
    """Work that kills the first worker that is given this item."""

    item: int
    mark: Path
    parent: int = field(default_factory=os.getpid)

    def __call__(self, item: int) -> int:
        if item == self.item:
            die_once(self.mark, self.parent)
        return 2 * item


@dataclass(frozen=True)
class DeadlyRows:
    """A shard that kills the first worker that reads it."""

    rows: Any
    mark: Path
    parent: int = field(default_factory=os.getpid)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.rows.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        die_once(self.mark, self.parent)
        return np.array(self.rows, dtype=dtype)


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
