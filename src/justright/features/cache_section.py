"""One section of the feature cache: the features of one key, in blocks that are whole or not there.

    <block>.npy         features, one row an image; <block> begins with their checksum
    <block>.ids.npy     the images they belong to

Blocks are written under names of their own, whole or not at all, and never changed, so any number of processes may
share the folder. Whoever loses a block just computes again.
"""

from __future__ import annotations

import logging
import os
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Int, Shaped

from justright.features.store import FeatureRows
from justright.files import replacing
from justright.hashing import hash_bytes
from justright.types import Array

logger = logging.getLogger(__name__)

IDS = ".ids.npy"
Digests: TypeAlias = Shaped[Array, " images"]


def digests(content_ids: Sequence[str]) -> Digests:
    """Content ids as 16 bytes each, which sort and compare as arrays."""
    return np.array([bytes.fromhex(hash_bytes(name.encode())) for name in content_ids], dtype="S16")


@dataclass(frozen=True)
class Block:
    """One file of features, with the time it was last used."""

    ids: Path
    n_bytes: int
    used: float

    @property
    def features(self) -> Path:
        """The features that belong to the ids."""
        return self.ids.with_name(self.ids.name.removesuffix(IDS) + ".npy")

    def remove(self) -> None:
        """The ids first: without them nobody looks for the features."""
        self.ids.unlink(missing_ok=True)
        self.features.unlink(missing_ok=True)


def blocks_of(folder: Path) -> Iterator[Block]:
    """The blocks that lie in the folder of a section."""
    for ids in sorted(folder.glob(f"*{IDS}")):
        try:
            block = Block(ids, 0, ids.stat().st_mtime)
            yield Block(ids, ids.stat().st_size + block.features.stat().st_size, block.used)
        except FileNotFoundError:  # another process evicts at this moment
            continue


class CacheSection:
    """The features of one key, as they were on disk when the section was opened.

    `on_growth` is told how many bytes each added block takes.
    """

    def __init__(self, folder: Path, on_growth: Callable[[int], None]):
        self.folder, self._on_growth = folder, on_growth
        self._blocks, parts = [], []
        for block in blocks_of(folder):
            try:
                parts.append(np.load(block.ids))
            except (OSError, ValueError, EOFError) as error:
                logger.warning("%s is damaged and not used: %s", block.ids, error)
                continue
            self._blocks.append(block)
        known = np.concatenate([np.empty(0, "S16"), *parts])
        order = np.argsort(known, kind="stable")
        self._known = known[order]
        self._block = np.repeat(np.arange(len(parts)), [len(part) for part in parts])[order]
        self._row = np.concatenate([np.empty(0, np.int64), *(np.arange(len(part)) for part in parts)])[order]
        self._intact: dict[int, bool] = {}

    def holds(self, ids: Digests) -> Bool[Array, " images"]:
        """Which of these images the section knew when it was opened."""
        return self._find(ids) >= 0

    def read(self, ids: Digests) -> tuple[Bool[Array, " images"], FeatureRows | None]:
        """Which of these images are there, and their features in this order; None if there are none."""
        place = self._find(ids)
        is_found, features = np.zeros(len(ids), bool), None
        for number in np.unique(self._block[place[place >= 0]]):
            mine = np.flatnonzero((place >= 0) & (self._block[place] == number))
            block = self._open(int(number))
            if block is None:
                continue
            if features is None:
                features = np.empty((len(ids), *block.shape[1:]), block.dtype)
            features[mine] = block[self._row[place[mine]]]
            is_found[mine] = True
        return is_found, None if features is None else features[is_found]

    def add(self, ids: Digests, features: FeatureRows) -> None:
        """Keep features as one block."""
        if not len(ids):
            return
        data = np.ascontiguousarray(features)
        stem = f"{zlib.crc32(data.tobytes()):08x}-{uuid.uuid4().hex}"
        n_bytes = 0
        for name, array in ((f"{stem}.npy", data), (f"{stem}{IDS}", ids)):  # a block is there once its ids are
            with replacing(self.folder / name) as temporary, temporary.open("wb") as file:
                np.save(file, array, allow_pickle=False)
                n_bytes += file.tell()
        self._on_growth(n_bytes)

    def _find(self, ids: Digests) -> Int[Array, " images"]:
        """Positions among the known ids, -1 where unknown."""
        if not len(self._known):
            return np.full(len(ids), -1)
        place = np.minimum(np.searchsorted(self._known, ids), len(self._known) - 1)
        return np.where(self._known[place] == ids, place, -1)

    def _open(self, number: int) -> FeatureRows | None:
        """A block, its checksum compared once; None, and a remark, where it is gone or damaged."""
        block = self._blocks[number]
        try:
            features: FeatureRows = np.load(block.features, mmap_mode="r", allow_pickle=False)
            if number not in self._intact:
                self._intact[number] = f"{zlib.crc32(features.tobytes()):08x}" == block.ids.name[:8]
                os.utime(block.ids)
        except (OSError, ValueError, EOFError) as error:
            logger.info("%s is gone or cut short: %s", block.features, error)
            return None
        if not self._intact[number]:
            logger.warning("%s is damaged and not used", block.features)
            block.remove()
            return None
        return features
