"""One section of the feature cache: the features of one key, in blocks that are whole or not there.

    <block>.npy         features, one row an image
    <block>.ids.npy     the images they belong to

<block> is a checksum of both files and of the section, a dash, and a checksum of the ids.

Blocks are written under names of their own, whole or not at all, and never changed, so any number of processes may
share the folder. Whoever loses a block just computes again; a block whose name does not fit its bytes is lost.
"""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Int, Shaped

from justright.features.store import FeatureRows
from justright.utils.files import replacing
from justright.utils.hashing import hash_bytes, hash_file, hash_value
from justright.utils.types import Array

logger = logging.getLogger(__name__)

IDS = ".ids.npy"
Digests: TypeAlias = Shaped[Array, " images"]


def digests(content_ids: Sequence[str]) -> Digests:
    """Content ids as 16 bytes each, which sort and compare as arrays."""
    return np.array([bytes.fromhex(hash_bytes(name.encode())) for name in content_ids], dtype="S16")


@dataclass(frozen=True)
class Block:
    """A file of features and one of the ids they belong to, with the time they were last used."""

    ids: Path
    features: Path
    n_bytes: int
    used: float

    def remove(self) -> None:
        """The ids first: without them nobody looks for the features."""
        self.ids.unlink(missing_ok=True)
        self.features.unlink(missing_ok=True)


def blocks_of(folder: Path) -> Iterator[Block]:
    """The blocks that lie in the folder of a section."""
    for ids in sorted(folder.glob(f"*{IDS}")):
        features = ids.with_name(ids.name.removesuffix(IDS) + ".npy")
        with suppress(FileNotFoundError):  # another process evicts at this moment
            yield Block(ids, features, ids.stat().st_size + features.stat().st_size, ids.stat().st_mtime)


class CacheSection:
    """The features of one key, as they were on disk when the section was opened.

    `on_growth` is told how many bytes each added block takes.
    """

    def __init__(self, folder: Path, on_growth: Callable[[int], None] = lambda n_bytes: None):
        self.folder, self._on_growth = folder, on_growth
        self._blocks, parts = [], []
        for block in blocks_of(folder):
            with suppress(FileNotFoundError):  # another process evicts at this moment
                data = block.ids.read_bytes()
                if block.ids.name.endswith(f"-{hash_bytes(data)}{IDS}"):
                    self._blocks.append(block)
                    parts.append(np.load(io.BytesIO(data), allow_pickle=False))
                else:
                    _drop(block, block.ids)
        known = np.concatenate([np.empty(0, "S16"), *parts])
        order = np.argsort(known, kind="stable")
        self._known = known[order]
        self._block = np.repeat(np.arange(len(parts)), [len(part) for part in parts])[order]
        self._row = np.concatenate([np.empty(0, np.int64), *(np.arange(len(part)) for part in parts)])[order]
        self._intact: set[int] = set()
        self._is_dropped, self._n_kept = np.zeros(len(known), bool), np.array([len(part) for part in parts], np.int64)

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
        files = [_npy(np.ascontiguousarray(array)) for array in (features, ids)]
        stem = self._stem(*map(hash_bytes, files))
        for name, data in zip((f"{stem}.npy", f"{stem}{IDS}"), files, strict=True):  # a block is there once its ids are
            with replacing(self.folder / name) as temporary:
                temporary.write_bytes(data)
        self._on_growth(sum(map(len, files)))

    def drop(self, ids: Digests) -> None:
        """Forget these images, and delete every block that then holds none but forgotten ones."""
        ids = np.unique(ids)
        first, end = (np.searchsorted(self._known, ids, side) for side in ("left", "right"))
        n_each = end - first  # an image is in several blocks where it was computed again after a kill
        place = np.arange(n_each.sum()) + np.repeat(end - n_each.cumsum(), n_each)
        place = place[~self._is_dropped[place]]
        self._is_dropped[place] = True
        for number, n_dropped in zip(*np.unique(self._block[place], return_counts=True), strict=True):
            self._n_kept[number] -= n_dropped
            if not self._n_kept[number]:
                self._blocks[number].remove()

    def _stem(self, features: str, ids: str) -> str:
        """What the files of a block are called, from their fingerprints: they belong together, and here."""
        return f"{hash_value([self.folder.name, features, ids])}-{ids}"

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
            if number not in self._intact:
                stem = block.features.stem
                if stem != self._stem(hash_file(block.features), stem.partition("-")[2]):
                    _drop(block, block.features)
                    return None
                os.utime(block.ids)
                self._intact.add(number)
            features: FeatureRows = np.load(block.features, mmap_mode="r", allow_pickle=False)
            return features
        except (OSError, ValueError, EOFError) as error:
            logger.info("%s is gone or cut short: %s", block.features, error)
            return None


def _drop(block: Block, damaged: Path) -> None:
    logger.warning("%s is damaged, or of an older version: what it held is computed again", damaged)
    block.remove()


def _npy(array: Shaped[Array, " ..."]) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()
