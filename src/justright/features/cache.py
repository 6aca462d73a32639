"""What is kept for later runs below JUSTRIGHT_HOME: features by the content of the image, and view banks.

    features/<backbone>-<hash>/key.json       what the features of this section were computed by
    features/<backbone>-<hash>/<block>.npy    features, one row per image
    features/<backbone>-<hash>/<block>.ids.npy  the images that they belong to
    banks/<hash>/                             a view bank, see bank.py

The key of a section has everything that can change a byte of a feature: backbone, transform, pooling, precision, batch
size, device, versions. Blocks are written under the hash of their ids and never changed, so any number of processes may
share the folder. Missing or damaged blocks are recomputed. Above a size limit the least recently used are deleted.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Bool, Int, Shaped

from justright.features.array_files import is_intact, open_array, write_array
from justright.features.store import FeatureRows
from justright.utils.errors import DataError
from justright.utils.files import UNITS, bytes_of, home, parsed_json, remove_leftovers, size_text, write_json
from justright.utils.hashing import hash_bytes, hash_value
from justright.utils.locks import EXPIRY, is_gone, lock_unread
from justright.utils.types import Array

_log = logging.getLogger(__name__)

FORMAT = 3
IDS, KEY, BANK_INDEX = ".ids.npy", "key.json", "index.json"
FEATURE_LIMIT, BANK_LIMIT = "20GB", "100GB"
Digests: TypeAlias = Shaped[Array, " images"]


def parse_size(text: str) -> int:
    """The number of bytes that a size such as `10GB` means."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?B)\s*", text, re.IGNORECASE)
    if match is None:
        raise DataError(f"{text!r} is no size", expected="a number and a unit, such as 500MB or 10GB")
    return int(float(match[1]) * UNITS[match[2].upper()])


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
        """Delete the files, the ids first: without them nobody looks for the features."""
        self.ids.unlink(missing_ok=True)
        self.features.unlink(missing_ok=True)

    def warn_and_remove(self, damaged: Path) -> None:
        """Delete a damaged block."""
        _log.warning("%s is damaged: its images are computed again", damaged)
        self.remove()


def blocks_of(folder: Path) -> Iterator[Block]:
    """The blocks in the folder of a section."""
    for ids in sorted(folder.glob(f"*{IDS}")):
        features = ids.with_name(ids.name.removesuffix(IDS) + ".npy")
        with suppress(FileNotFoundError):  # another process deletes it just now
            yield Block(ids, features, ids.stat().st_size + features.stat().st_size, ids.stat().st_mtime)


class CacheSection:
    """The features of one key, as they were on disk when the section was opened.

    `on_growth` is called with the size of each added block.
    """

    def __init__(self, folder: Path, on_growth: Callable[[int], None] = lambda n_bytes: None):
        self.folder, self._on_growth = folder, on_growth
        self._blocks, parts = [], []
        for block in blocks_of(folder):
            with suppress(FileNotFoundError):  # another process deletes it just now
                if is_intact(block.ids):
                    self._blocks.append(block)
                    parts.append(np.array(open_array(block.ids)))
                else:
                    block.warn_and_remove(block.ids)
        ids = np.concatenate([np.empty(0, "S16"), *parts])
        order = np.argsort(ids, kind="stable")
        self._ids = ids[order]
        self._block = np.repeat(np.arange(len(parts)), [len(part) for part in parts])[order]
        self._row = np.concatenate([np.empty(0, np.int64), *(np.arange(len(part)) for part in parts)])[order]
        self._intact: set[int] = set()
        self._is_dropped, self._n_kept = np.zeros(len(ids), bool), np.array([len(part) for part in parts], np.int64)

    def holds(self, ids: Digests) -> Bool[Array, " images"]:
        """Which of these images were in the section when it was opened."""
        return self._find(ids) >= 0

    def read(self, ids: Digests) -> tuple[Bool[Array, " images"], FeatureRows | None]:
        """Which of these images are in the section, and their features in this order; None if there are none."""
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
        """Write features as one block."""
        if not len(ids):
            return
        stem = hash_bytes(ids.tobytes())
        files = self.folder / f"{stem}.npy", self.folder / f"{stem}{IDS}"
        for file, array in zip(files, (np.ascontiguousarray(features), ids), strict=True):  # a block counts once its
            write_array(file, array)  # ids are there, so they come last
        self._on_growth(bytes_of(*files))

    def drop(self, ids: Digests) -> None:
        """Forget these images, and delete every block that has no others."""
        ids = np.unique(ids)
        first, end = (np.searchsorted(self._ids, ids, side) for side in ("left", "right"))
        n_each = end - first  # an image is in several blocks where it was computed again after a kill
        place = np.arange(n_each.sum()) + np.repeat(end - n_each.cumsum(), n_each)
        place = place[~self._is_dropped[place]]
        self._is_dropped[place] = True
        for number, n_dropped in zip(*np.unique(self._block[place], return_counts=True), strict=True):
            self._n_kept[number] -= n_dropped
            if not self._n_kept[number]:
                self._blocks[number].remove()

    def _find(self, ids: Digests) -> Int[Array, " images"]:
        """Positions among the ids of the section, -1 where missing."""
        if not len(self._ids):
            return np.full(len(ids), -1)
        place = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        return np.where(self._ids[place] == ids, place, -1)

    def _open(self, number: int) -> FeatureRows | None:
        """A block, its checksum compared once; None, with a log line, if it is missing or damaged."""
        block = self._blocks[number]
        try:
            if number not in self._intact:
                if not is_intact(block.features):
                    block.warn_and_remove(block.features)
                    return None
                os.utime(block.ids)
                self._intact.add(number)
            return open_array(block.features)
        except (OSError, ValueError, EOFError) as error:
            _log.info("%s cannot be read: %s", block.features, error)
            return None


class FeatureCache:
    """All sections of the feature cache and the size limit they share.

    `limit` is a size such as `20GB`; by default JUSTRIGHT_CACHE_LIMIT, or 20 GB.
    """

    def __init__(self, root: Path | None = None, limit: str | None = None):
        self.root = root or home() / "features"
        self.limit = parse_size(limit or os.environ.get("JUSTRIGHT_CACHE_LIMIT") or FEATURE_LIMIT)
        self.n_bytes = sum(block.n_bytes for block in self._blocks())

    def section(self, key: Mapping[str, Any]) -> CacheSection:
        """The features that one backbone computed in one way."""
        name = re.sub(r"[^\w.-]", "_", str(key["backbone"]["name"]))
        folder = self.root / f"{name}-{hash_value([FORMAT, key], size=8)}"
        if _read_key(folder) != json.loads(json.dumps(key)):  # for people; features are found by the folder's name
            if (folder / KEY).exists():
                _log.warning("%s is damaged; it is written again", folder / KEY)
            write_json(folder / KEY, key)

        def grow(n_bytes: int) -> None:
            if not (folder / KEY).exists():  # another process has cleared the cache
                write_json(folder / KEY, key)
            self._grow(n_bytes)

        return CacheSection(folder, grow)

    def sections(self) -> list[dict[str, Any]]:
        """Each section: backbone, pooling, precision, images, bytes, and when it was last used (seconds of 1970)."""
        sections = []
        for folder in self._folders():
            try:
                sections.append(_describe_section(folder))
            except (OSError, ValueError, EOFError, LookupError, TypeError, AttributeError) as error:
                _log.warning("%s cannot be read and is left out: %r", folder, error)
        return sections

    def clear(self, backbone: str | None = None, limit: str | None = None) -> int:
        """Delete the sections of a backbone, by default of all, or only what is above `limit`; return the bytes freed.

        Files that another process is writing stay.
        """
        named = {backbone, *(section["name"] for section in self.sections() if section["backbone"] == backbone)}
        folders = [folder for folder in self._folders() if backbone is None or folder.name in named]
        before = sum(block.n_bytes for block in self._blocks())
        if limit is not None:
            self._shrink(parse_size(limit), [block for folder in folders for block in blocks_of(folder)])
        else:
            for folder in folders:
                _empty_section(folder)
        self.n_bytes = sum(block.n_bytes for block in self._blocks())
        return before - self.n_bytes

    def _grow(self, n_bytes: int) -> None:
        """Delete what is above the limit; the disk is scanned only if this process counts more than that."""
        self.n_bytes += n_bytes
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
        return sorted(file.parent for file in self.root.glob(f"*/{KEY}"))

    def _blocks(self) -> Iterator[Block]:
        for folder in self._folders():
            yield from blocks_of(folder)


def _empty_section(folder: Path) -> None:
    """Delete a section, except files that a process may be writing: temporary ones, and features without ids yet."""
    for block in blocks_of(folder):
        block.remove()
    remove_leftovers(folder)
    for file in folder.glob("*.npy"):
        if is_gone(file, EXPIRY):
            file.unlink(missing_ok=True)
    with suppress(OSError):  # another process writes into it, or has removed it
        if [file.name for file in folder.iterdir()] == [KEY]:
            (folder / KEY).unlink(missing_ok=True)
            folder.rmdir()


def _read_key(folder: Path) -> Any:
    """The content of key.json; None if it cannot be read."""
    try:
        return parsed_json((folder / KEY).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _describe_section(folder: Path) -> dict[str, Any]:
    key, blocks = _read_key(folder), list(blocks_of(folder))
    return {
        "name": folder.name,
        "backbone": key["backbone"]["name"],
        "pooling": key["backbone"].get("pooling", ""),
        "precision": key.get("computation", {}).get("precision", ""),
        "images": sum(len(open_array(block.ids)) for block in blocks),
        "bytes": sum(block.n_bytes for block in blocks),
        "used": max((block.used for block in blocks), default=0.0),
    }


class KeptBanks:
    """All view banks below `root`, by default those of JUSTRIGHT_HOME. A bank that a process reads is never deleted.

    `limit` is a size such as `20GB`; by default JUSTRIGHT_BANK_LIMIT, or 100 GB.
    """

    def __init__(self, root: Path | None = None, limit: str | None = None):
        self.root = home() / "banks" if root is None else root
        self.limit = parse_size(limit or os.environ.get("JUSTRIGHT_BANK_LIMIT") or BANK_LIMIT)

    def all(self) -> list[dict[str, Any]]:
        """Each bank: name, backbone, transform, precision, images, views, bytes, and when it was last used.

        One whose index cannot be read, as a killed build may leave it, has no backbone and no images.
        """
        banks = []
        for folder in sorted(self.root.glob("*")):
            with suppress(FileNotFoundError):  # another process deletes it just now
                banks += [_describe_bank(folder)] if folder.is_dir() else []
        return banks

    def clear(self, backbone: str | None = None, limit: int | None = None) -> int:
        """Delete the banks of a backbone, by default of all, or only what is above `limit`; return the bytes freed."""
        chosen = [bank for bank in self.all() if backbone in (None, bank["backbone"], bank["name"])]
        left = before = sum(bank["bytes"] for bank in chosen)
        for bank in sorted(chosen, key=lambda bank: float(bank["used"])):
            if limit is not None and left <= limit:
                break
            remove_unread(self.root / bank["name"])
            left -= bank["bytes"] - bytes_of(self.root / bank["name"])
        return before - left

    def make_room(self, n_bytes: int) -> None:
        """Delete the least recently used banks, as far as the limit requires it to add so many bytes."""
        if freed := self.clear(limit=max(0, self.limit - n_bytes)):
            _log.warning(
                "%s of the least recently used view banks were deleted: at most %s are kept (JUSTRIGHT_BANK_LIMIT)",
                size_text(freed),
                size_text(self.limit),
            )


def remove_unread(folder: Path) -> None:
    """Delete a folder unless a process reads it; see `ReaderLease`."""
    guard = lock_unread(folder)
    if guard is not None:
        shutil.rmtree(folder, ignore_errors=True)
        guard.release()


def _describe_bank(folder: Path) -> dict[str, Any]:
    shards = list(folder.glob("rows*.npy"))
    read_or_written = [max(stat.st_mtime, stat.st_atime) for stat in map(Path.stat, shards)]
    return {
        "name": folder.name,
        **_read_bank_index(folder / BANK_INDEX),
        "views": len({shard.stem.split("-")[1] for shard in shards}),
        "bytes": bytes_of(folder),
        "used": max(read_or_written, default=folder.stat().st_mtime),
    }


def _read_bank_index(index: Path) -> dict[str, Any]:
    try:
        about = parsed_json(index.read_text(encoding="utf-8"))
        return {
            "backbone": str(about["backbone"]),
            "transform": str(about["transform"]["kind"]).lower(),
            "precision": str(about["precision"]),
            "images": int(about["n_images"]),
        }
    except (OSError, ValueError, TypeError, KeyError) as error:
        if index.exists():  # else the build has just started
            _log.warning("%s cannot be read: %s; `justright cache clear` removes it", index, error)
        return {"backbone": "", "transform": "", "precision": "", "images": 0}
