"""Features that were computed once, kept by the content of the image: no source and no run computes them again.

    <home>/features/<backbone>-<key>/key.json            what all features in this folder were computed by
    <home>/features/<backbone>-<key>/<block>.npy         features, one row an image; <block> begins with their checksum
    <home>/features/<backbone>-<key>/<block>.ids.npy     the images they belong to

The key is made of everything that can change a byte of a feature: backbone, transform, pooling, precision, batch size,
device, versions. Blocks are written under names of their own, whole or not at all, and never changed, so any number of
processes may share the folder. Above the size limit the blocks go that were used longest ago. Whoever loses a block
just computes again.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from justright.errors import DataError
from justright.files import replacing, write_json
from justright.types import Array

logger = logging.getLogger(__name__)

DEFAULT_LIMIT = "20GB"
IDS = ".ids.npy"
UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
Digests: TypeAlias = Shaped[Array, " images"]
Features: TypeAlias = Float[Array, " rows *axes"]


def home() -> Path:
    """Where caches live: JUSTRIGHT_HOME, or `.cache/justright` in the user's home."""
    return Path(os.environ.get("JUSTRIGHT_HOME") or Path.home() / ".cache" / "justright")


def parse_size(text: str) -> int:
    """`10GB` in bytes."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?B)\s*", text, re.IGNORECASE)
    if found is None:
        raise DataError(f"{text!r} is no size", expected="a number and a unit, such as 500MB or 10GB")
    return int(float(found[1]) * UNITS[found[2].upper()])


def digests(content_ids: Sequence[str]) -> Digests:
    """Content ids as 16 bytes each, which sort and compare as arrays."""
    return np.array([blake2b(name.encode(), digest_size=16).digest() for name in content_ids], dtype="S16")


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


class FeatureCache:
    """All sections of the cache and the size limit they share.

    `limit` is a size such as `20GB`; by default JUSTRIGHT_CACHE_LIMIT, or 20 GB.
    """

    def __init__(self, root: Path | None = None, limit: str | None = None):
        self.root = root or home() / "features"
        self.limit = parse_size(limit or os.environ.get("JUSTRIGHT_CACHE_LIMIT") or DEFAULT_LIMIT)
        self.n_bytes = sum(block.n_bytes for block in self._blocks())

    def section(self, key: Mapping[str, Any]) -> CacheSection:
        """The features that one backbone computed in one way."""
        text = json.dumps(key, sort_keys=True)
        name = re.sub(r"[^\w.-]", "_", str(key["backbone"]["name"]))
        folder = self.root / f"{name}-{blake2b(text.encode(), digest_size=8).hexdigest()}"
        if not (folder / "key.json").exists():
            write_json(folder / "key.json", key)
        return CacheSection(self, folder)

    def sections(self) -> list[dict[str, Any]]:
        """Each section: backbone, pooling, precision, images, bytes, and when it was last used (seconds of 1970)."""
        found = []
        for folder in self._folders():
            blocks = list(_blocks_of(folder))
            try:
                key = json.loads((folder / "key.json").read_text(encoding="utf-8"))
                n_images = sum(len(np.load(block.ids, mmap_mode="r")) for block in blocks)
            except (OSError, ValueError, EOFError) as error:
                logger.warning("%s cannot be read and is left out: %s", folder, error)
                continue
            found.append(
                {
                    "name": folder.name,
                    "backbone": key["backbone"]["name"],
                    "pooling": key["backbone"].get("pooling", ""),
                }
                | {"precision": key.get("computation", {}).get("precision", ""), "images": n_images}
                | {"bytes": sum(block.n_bytes for block in blocks), "used": max((b.used for b in blocks), default=0.0)}
            )
        return found

    def clear(self, backbone: str | None = None, limit: str | None = None) -> int:
        """Remove the sections of a backbone (of all without a name), or only what is above `limit`; the bytes freed."""
        folders = [folder for folder in self._folders() if backbone is None or _belongs_to(folder, backbone)]
        before = sum(block.n_bytes for block in self._blocks())
        if limit is not None:
            self._shrink(parse_size(limit), [block for folder in folders for block in _blocks_of(folder)])
        else:
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)
        self.n_bytes = sum(block.n_bytes for block in self._blocks())
        return before - self.n_bytes

    def keep_limit(self) -> None:
        """Evict what is above the limit. The disk is looked at only when this process thinks it is."""
        if self.n_bytes > self.limit:
            self.n_bytes = self._shrink(self.limit, list(self._blocks()))

    def _shrink(self, limit: int, blocks: Sequence[Block]) -> int:
        left = sum(block.n_bytes for block in blocks)
        for block in sorted(blocks, key=lambda block: block.used):
            if left <= limit:
                break
            block.remove()
            left -= block.n_bytes
        return left

    def _folders(self) -> list[Path]:
        return sorted(file.parent for file in self.root.glob("*/key.json"))

    def _blocks(self) -> Iterator[Block]:
        for folder in self._folders():
            yield from _blocks_of(folder)


class CacheSection:
    """The features of one key, as they were on disk when the section was opened."""

    def __init__(self, cache: FeatureCache, folder: Path):
        self.cache, self.folder = cache, folder
        self._blocks, parts = [], []
        for block in _blocks_of(folder):
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

    def read(self, ids: Digests) -> tuple[Bool[Array, " images"], Features | None]:
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

    def add(self, ids: Digests, features: Features) -> None:
        """Keep features as one block."""
        if not len(ids):
            return
        data = np.ascontiguousarray(features)
        stem = f"{zlib.crc32(data.tobytes()):08x}-{uuid.uuid4().hex}"
        for name, array in ((f"{stem}.npy", data), (f"{stem}{IDS}", ids)):  # a block is there once its ids are
            with replacing(self.folder / name) as temporary, temporary.open("wb") as file:
                np.save(file, array, allow_pickle=False)
                self.cache.n_bytes += file.tell()
        self.cache.keep_limit()

    def _find(self, ids: Digests) -> Int[Array, " images"]:
        """Positions among the known ids, -1 where unknown."""
        if not len(self._known):
            return np.full(len(ids), -1)
        place = np.minimum(np.searchsorted(self._known, ids), len(self._known) - 1)
        return np.where(self._known[place] == ids, place, -1)

    def _open(self, number: int) -> Features | None:
        """A block, its checksum compared once; None, and a remark, where it is gone or damaged."""
        block = self._blocks[number]
        try:
            features: Features = np.load(block.features, mmap_mode="r", allow_pickle=False)
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


def _blocks_of(folder: Path) -> Iterator[Block]:
    for ids in sorted(folder.glob(f"*{IDS}")):
        try:
            block = Block(ids, 0, ids.stat().st_mtime)
            yield Block(ids, ids.stat().st_size + block.features.stat().st_size, block.used)
        except FileNotFoundError:  # another process evicts at this moment
            continue


def _belongs_to(folder: Path, backbone: str) -> bool:
    """Whether a section is of this backbone, or has this name."""
    try:
        key = json.loads((folder / "key.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return backbone in (key["backbone"]["name"], folder.name)
