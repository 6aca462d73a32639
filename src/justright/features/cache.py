"""What is kept for later runs below JUSTRIGHT_HOME, by the content of the image: features, and views.

    features/<backbone>-<hash>/key.json       what the rows of this section were computed by
    features/<backbone>-<hash>/<hash>.block   some images and their features
    banks/<backbone>-<hash>/...               the same for views after the frozen prefix, see bank.py

The key of a section has everything that can change a byte of a row: backbone, transform, precision, batch size, device,
versions. A block is two npy arrays, ids and rows, and a digest of all that with the name of file and folder: a damaged,
moved or renamed block is detected. Blocks are complete or absent and never change, so any number of processes may share
the folder. Missing or damaged blocks are recomputed. Above a size limit the least recently used are deleted.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Int, Shaped

from justright.features.store import npy_header
from justright.utils.errors import DataError
from justright.utils.files import UNITS, home, parsed_json, remove_leftovers, replacing, size_text, write_json
from justright.utils.hashing import SIZE, hash_bytes, hash_value
from justright.utils.locks import locked_file
from justright.utils.types import Array

_log = logging.getLogger(__name__)

FORMAT = 4
KEY, BLOCK, LEASE = "key.json", ".block", ".in-use"
BLOCK_BYTES = 32 << 20  # rows that wait in memory for the next block
N_MAPPED = 256  # blocks: each map holds a file descriptor
NOT_A_BLOCK = (ValueError, EOFError, OverflowError, TypeError, SyntaxError, MemoryError)  # as numpy raises them

Ids: TypeAlias = Shaped[Array, " images"]
Rows: TypeAlias = Shaped[Array, " rows *axes"]


def parse_size(text: str) -> int:
    """The number of bytes that a size such as `10GB` means."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?B)\s*", text, re.IGNORECASE)
    if match is None:
        raise DataError(f"{text!r} is no size", expected="a number and a unit, such as 500MB or 10GB")
    return int(float(match[1]) * UNITS[match[2].upper()])


def digests(content_ids: Sequence[str]) -> Ids:
    """Content ids as 16 bytes each, which sort and compare as arrays."""
    return np.array([bytes.fromhex(hash_bytes(name.encode())) for name in content_ids], dtype="S16")


def write_block(path: Path, ids: Ids, rows: Rows) -> None:
    """Write a block atomically."""
    digest = _digest(path)
    with replacing(path) as temporary, temporary.open("wb") as file:
        for array in (ids, rows):
            for data in (npy_header(array.dtype, array.shape), array.tobytes()):
                digest.update(data)
                file.write(data)
        file.write(digest.digest())


def open_block(path: Path) -> tuple[Ids, Rows]:
    """The ids of a block, and its rows as a memory map; ValueError if it is no block."""
    with path.open("rb") as file:
        ids = np.lib.format.read_array(file, allow_pickle=False)
        np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        if ids.dtype != "S16" or len(ids) != shape[0]:
            raise ValueError(f"ids of {ids.dtype}, {len(ids)} for {shape[0]} rows")
        return ids, np.memmap(path, dtype, "r", file.tell(), shape)


def is_intact(path: Path) -> bool:
    """Whether a block matches its digest; reads it once."""
    data, digest = memoryview(path.read_bytes()), _digest(path)
    digest.update(data[:-SIZE])
    return data[-SIZE:] == digest.digest()


def _digest(path: Path) -> hashlib.blake2b:
    return hashlib.blake2b(f"{path.parent.name}/{path.name}\n".encode(), digest_size=SIZE)


class _Block(NamedTuple):
    path: Path
    n_bytes: int
    used: float  # seconds of 1970


def _blocks_in(folder: Path) -> Iterator[_Block]:
    for path in sorted(folder.glob(f"*{BLOCK}")):
        with suppress(FileNotFoundError):  # another process deletes it just now
            stat = path.stat()
            yield _Block(path, stat.st_size, stat.st_mtime)


class Section:
    """Rows by image, in the blocks of one folder, as they were on disk when the section was opened."""

    def __init__(self, folder: Path, on_growth: Callable[[int], None] = lambda n_bytes: None):
        self.folder, self._on_growth = folder, on_growth
        self._blocks: list[Path] = []
        self._intact: set[int] = set()
        self._added: list[Path] = []
        self._waiting: list[tuple[Ids, Rows]] = []
        self._mapped = lru_cache(maxsize=N_MAPPED)(lambda number: open_block(self._blocks[number])[1])
        parts: list[Ids] = []
        for path, _, _ in _blocks_in(folder):
            with suppress(FileNotFoundError):  # another process deletes it just now
                try:
                    ids = open_block(path)[0]
                    if path != self._path(ids):
                        raise ValueError("a block of other images")
                    parts.append(ids)
                    self._blocks.append(path)
                except NOT_A_BLOCK:
                    self._discard(path)
        ids, sizes = np.concatenate([np.empty(0, "S16"), *parts]), [len(part) for part in parts]
        order = np.argsort(ids, kind="stable")
        self._ids = ids[order]
        self._block = np.repeat(np.arange(len(parts), dtype=np.int32), sizes)[order]
        self._row = np.concatenate([np.arange(size, dtype=np.int32) for size in [0, *sizes]])[order]

    def holds(self, ids: Ids, blocks: Sequence[int] | None = None) -> Bool[Array, " images"]:
        """Which of these images were in the section when it was opened, or in some of its blocks."""
        place = self.find(ids)
        is_held = place >= 0
        if blocks is not None:
            is_held[is_held] = np.isin(self._block[place[is_held]], blocks)
        return is_held

    def find(self, ids: Ids) -> Int[Array, " images"]:
        """The place of each image in the section, -1 where it is missing."""
        if not len(self._ids):
            return np.full(len(ids), -1)
        place = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        return np.where(self._ids[place] == ids, place, -1)

    def blocks_with(self, ids: Ids) -> list[int]:
        """Numbers of the blocks in which these images are."""
        place = self.find(ids)
        return np.unique(self._block[place[place >= 0]]).tolist()

    def read(self, ids: Ids) -> tuple[Bool[Array, " images"], Rows | None]:
        """Which of these images are in intact blocks, and their rows in this order; None if there are none."""
        place = self.find(ids)
        is_found, rows = np.zeros(len(ids), bool), None
        for number in self.blocks_with(ids):
            if not self.check(number):
                continue
            mine = np.flatnonzero((place >= 0) & (self._block[place] == number))
            block = self._mapped(number)
            rows = np.empty((len(ids), *block.shape[1:]), block.dtype) if rows is None else rows
            rows[mine] = block[self._row[place[mine]]]
            is_found[mine] = True
        return is_found, None if rows is None else rows[is_found]

    def rows_at(self, place: Int[Array, " images"]) -> list[Any]:
        """One row for each place, of blocks that need not be checked any more."""
        pairs = zip(self._block[place].tolist(), self._row[place].tolist(), strict=True)
        return [self._mapped(number)[row] for number, row in pairs]

    def check(self, number: int) -> bool:
        """Whether a block is there and matches its digest, which is compared once; a damaged one is deleted."""
        path = self._blocks[number]
        if number in self._intact:
            return True
        try:
            if not is_intact(path):
                self._discard(path)
                return False
            os.utime(path)
        except OSError as error:
            _log.info("%s cannot be read: %s", path, error)
            return False
        self._intact.add(number)
        return True

    def add(self, ids: Ids, rows: Rows) -> None:
        """Keep rows; they are on disk once `flush` has returned."""
        if len(ids):
            self._waiting.append((ids, rows))
        if sum(waiting.nbytes for _, waiting in self._waiting) >= BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the rows that wait as one block."""
        if not self._waiting:
            return
        ids, rows = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        self._waiting = []
        path = self._path(ids)
        write_block(path, ids, rows)
        self._added.append(path)
        self._on_growth(path.stat().st_size)

    def remove_added(self) -> None:
        """Delete the blocks that this object has written."""
        for path in self._added:
            path.unlink(missing_ok=True)

    def lease(self) -> IO[Any] | None:
        """Keep the section from being deleted until the result is closed, or the process ends."""
        return locked_file(self.folder / LEASE, is_shared=True)

    def _path(self, ids: Ids) -> Path:
        return self.folder / f"{hash_bytes(ids.tobytes())}{BLOCK}"

    def _discard(self, path: Path) -> None:
        _log.warning("%s is damaged: its images are computed again", path)
        path.unlink(missing_ok=True)


class Cache:
    """All sections below `root` and the size limit that they share, such as `20GB`. A folder of JUSTRIGHT_HOME.

    Blocks of a section that is leased are never deleted.
    """

    name, variable, default_limit = "features", "JUSTRIGHT_CACHE_LIMIT", "20GB"
    columns, unit = ("backbone", "pooling", "precision"), "images"

    def __init__(self, root: Path | None = None, limit: str | None = None):
        self.root = home() / self.name if root is None else root
        self.limit = parse_size(limit or os.environ.get(self.variable) or self.default_limit)
        self.n_bytes = self._size()

    def section(self, key: Mapping[str, Any], about: Mapping[str, str]) -> Section:
        """The rows that were computed in one way; `about` is what `sections` shows of it, one entry per column."""
        name = re.sub(r"[^\w.-]", "_", about["backbone"])
        folder = self.root / f"{name}-{hash_value([FORMAT, key], size=12)}"
        value = json.loads(json.dumps({"about": about, "key": key}))

        def write_key() -> None:  # for people: rows are found by the name of the folder
            if _read_key(folder) != value:
                if (folder / KEY).exists():
                    _log.warning("%s is damaged; it is written again", folder / KEY)
                write_json(folder / KEY, value)

        def grow(n_bytes: int) -> None:
            write_key()  # another process may have cleared the cache
            self.n_bytes += n_bytes
            if self.n_bytes > self.limit:
                self.make_room(0)

        write_key()
        return Section(folder, grow)

    def sections(self) -> list[dict[str, Any]]:
        """Each section: name, what it is about, number of images or views, bytes, when it was last used (seconds)."""
        sections = []
        for folder in self._folders():
            try:
                sections.append(self._describe(folder))
            except FileNotFoundError:  # another process deletes it just now
                pass
            except (OSError, ValueError, EOFError, LookupError, TypeError, AttributeError) as error:
                _log.warning("%s cannot be read and is left out: %r", folder, error)
        return sections

    def clear(self, backbone: str | None = None, limit: int = 0) -> int:
        """Delete the sections of a backbone, or one by its name, by default all; returns the bytes freed.

        With a limit only the least recently used blocks above it. Leased sections and files being written stay.
        """
        named = {backbone, *(each["name"] for each in self.sections() if each["backbone"] == backbone)}
        chosen = [folder for folder in self._folders() if backbone is None or folder.name in named]
        before = self._size()
        self._shrink(limit, chosen)
        for folder in chosen:
            _remove_if_empty(folder)
        self.n_bytes = self._size()
        return before - self.n_bytes

    def make_room(self, n_bytes: int) -> None:
        """Delete the least recently used blocks, as far as the limit requires it to add so many bytes."""
        before = self._size()
        self.n_bytes = self._shrink(max(0, self.limit - n_bytes), self._folders())
        if self.n_bytes < before:
            freed = size_text(before - self.n_bytes), self.root, size_text(self.limit), self.variable
            _log.warning("%s of the least recently used in %s were deleted: at most %s are kept (%s)", *freed)

    def _shrink(self, limit: int, folders: Sequence[Path]) -> int:
        """Delete blocks until at most `limit` bytes are left, except those of leased sections; returns what is left."""
        blocks = [block for folder in folders for block in _blocks_in(folder)]
        left = sum(block.n_bytes for block in blocks)
        with ExitStack() as locks:
            for folder in folders if left > limit else ():
                lock = locked_file(folder / LEASE, wait=False)
                if lock is None:
                    blocks = [block for block in blocks if block.path.parent != folder]
                else:
                    locks.enter_context(lock)
            for block in sorted(blocks, key=lambda block: block.used):
                if left <= limit:
                    break
                block.path.unlink(missing_ok=True)
                left -= block.n_bytes
        return left

    def _describe(self, folder: Path) -> dict[str, Any]:
        about, blocks = _read_key(folder)["about"], list(_blocks_in(folder))
        return {
            "name": folder.name,
            **{name: str(about[name]) for name in self.columns},
            self.unit: sum(len(open_block(block.path)[0]) for block in blocks),
            "bytes": sum(block.n_bytes for block in blocks),
            "used": max((block.used for block in blocks), default=0.0),
        }

    def _size(self) -> int:
        return sum(block.n_bytes for folder in self._folders() for block in _blocks_in(folder))

    def _folders(self) -> list[Path]:
        return sorted(file.parent for file in self.root.glob(f"*/{KEY}"))


class FeatureCache(Cache):
    """Features of images; by default at most JUSTRIGHT_CACHE_LIMIT, or 20 GB."""


class KeptBanks(Cache):
    """Views after the frozen prefix; by default at most JUSTRIGHT_BANK_LIMIT, or 100 GB."""

    name, variable, default_limit = "banks", "JUSTRIGHT_BANK_LIMIT", "100GB"
    columns, unit = ("backbone", "transform", "precision"), "views"


def _read_key(folder: Path) -> Any:
    """The content of key.json; None if it cannot be read."""
    try:
        return parsed_json((folder / KEY).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _remove_if_empty(folder: Path) -> None:
    """Delete a section without blocks, unless a process is writing the first or has leased it."""
    remove_leftovers(folder)
    if any(_blocks_in(folder)) or (lock := locked_file(folder / LEASE, wait=False)) is None:
        return
    with lock, suppress(OSError):  # another process writes into it, or has removed it
        if {file.name for file in folder.iterdir()} <= {KEY, LEASE}:
            (folder / KEY).unlink(missing_ok=True)
            (folder / LEASE).unlink(missing_ok=True)
            folder.rmdir()
