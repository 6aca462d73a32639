"""Features and views that are kept below JUSTRIGHT_HOME for later runs, by the content of the image.

    features/<backbone>-<hash>/key.json       what the rows of this section were computed by
    features/<backbone>-<hash>/<hash>.block   some images and their features
    banks/<backbone>-<hash>/...               the same for views after the frozen prefix, see bank.py

A section holds rows that were computed in one way. Its key has everything that can change a byte of a row: backbone,
transform, precision, batch size, device, versions. A block is two npy arrays, ids and rows, and a digest of both with
the name of file and folder, which detects a damaged, moved or renamed block. Blocks are complete or absent and never
change, so any number of processes may share the folder. Missing or damaged blocks are recomputed. Above a size limit
the least recently used are deleted.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import IO, Any, TypeAlias

import numpy as np
from jaxtyping import Bool, Int, Shaped

from justright.features.store import npy_header
from justright.utils.context import track
from justright.utils.errors import DataError
from justright.utils.files import UNITS, home, parsed_json, replacing, size_text, write_json
from justright.utils.hashing import SIZE, hash_bytes, hash_pieces, hash_value
from justright.utils.locks import locked_file
from justright.utils.types import Array

_log = logging.getLogger(__name__)

FORMAT = 4
KEY, BLOCK, LEASE = "key.json", ".block", ".in-use"
BLOCK_BYTES = 32 << 20  # rows that wait in memory for the next block
N_MAPPED = 256  # blocks: each map holds a file descriptor
NOT_A_BLOCK = (ValueError, EOFError, OverflowError, TypeError, SyntaxError, MemoryError)  # as numpy raises them

# numpy parses headers with `ast`, which in Python 3.11 fails now and then if two threads use it (gh-106905 of CPython)
_one_header = Lock()

Ids: TypeAlias = Shaped[Array, " images"]
Rows: TypeAlias = Shaped[Array, " rows *axes"]
Places: TypeAlias = Int[Array, "2 images"]  # the block of each image and its row there, -1 for a missing image


def parse_size(text: str) -> int:
    """The number of bytes of a size such as `10GB`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?B)\s*", text, re.IGNORECASE)
    if match is None:
        raise DataError(f"{text!r} is no size", expected="a number and a unit, such as 500MB or 10GB")
    return int(float(match[1]) * UNITS[match[2].upper()])


def digests(content_ids: Sequence[str]) -> Ids:
    """Content ids as 16 bytes each, which sort and compare as arrays."""
    return np.array([bytes.fromhex(hash_bytes(name.encode())) for name in content_ids], dtype="S16")


def _open_block(path: Path) -> tuple[Ids, Rows]:
    """The ids of a block, and its rows as a memory map; raises one of `NOT_A_BLOCK` for another file."""
    with path.open("rb") as file:
        with _one_header:
            ids = np.lib.format.read_array(file, allow_pickle=False)
            np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        if ids.dtype != "S16" or len(ids) != shape[0]:
            raise ValueError(f"ids of {ids.dtype}, {len(ids)} for {shape[0]} rows")
        return ids, np.memmap(path, dtype, "r", file.tell(), shape)


def is_intact(path: Path) -> bool:
    """Whether a block matches its digest; reads it once."""
    data = memoryview(path.read_bytes())
    return data[-SIZE:] == _digest(path, data[:-SIZE])


def _digest(path: Path, data: bytes | memoryview) -> bytes:
    return bytes.fromhex(hash_pieces([f"{path.parent.name}/{path.name}\n".encode(), data]))


class Section:
    """Rows by image: those in the blocks of a folder when the section is first read, and those added here."""

    def __init__(self, folder: Path, on_growth: Callable[[], None] = lambda: None):
        self.folder, self._on_growth = folder, on_growth
        self._intact: set[Path] = set()
        self._added: list[Path] = []
        self._waiting: list[tuple[Ids, Rows]] = []
        self._block_rows = lru_cache(maxsize=N_MAPPED)(lambda number: _open_block(self._blocks[number])[1])

    @cached_property
    def _blocks(self) -> list[Path]:
        return sorted(self.folder.glob(f"*{BLOCK}"))

    @cached_property
    def index(self) -> tuple[Ids, Places]:
        """All ids in order, the first one for missing images, and their places."""
        ids, places = [np.array([b""], "S16")], [np.full((2, 1), -1, np.int32)]
        for number, path in enumerate(self._blocks):
            try:
                block_ids = _open_block(path)[0]
                if path != self._path(block_ids):
                    raise ValueError("a block of other images")
                rows = np.arange(len(block_ids), dtype=np.int32)
                ids.append(block_ids)
                places.append(np.stack([np.full_like(rows, number), rows]))
            except FileNotFoundError:  # another process has deleted it
                pass
            except NOT_A_BLOCK:
                self._discard(path)
        all_ids = np.concatenate(ids)
        order = np.argsort(all_ids, kind="stable")
        return all_ids[order], np.concatenate(places, axis=1)[:, order]

    def locate(self, ids: Ids) -> Places:
        """The block of each image and its row in the block."""
        known, places = self.index
        nearest = np.searchsorted(known, ids, side="right") - 1
        return np.where(known[nearest] == ids, places[:, nearest], -1)

    def holds(self, ids: Ids) -> Bool[Array, " images"]:
        """Which of these images are in the section; their blocks may be damaged."""
        return self.locate(ids)[0] >= 0

    def locate_intact(self, ids: Ids, what: str = "") -> Places:
        """As `locate`, without damaged blocks: each block is checked once. `what` names the progress of the check."""
        places = self.locate(ids)
        numbers = np.unique(places[0][places[0] >= 0]).tolist()
        steps = track(numbers, len(numbers), what) if what and numbers else numbers
        intact = [number for number in steps if self._check(number)]
        return np.where(np.isin(places[0], intact), places, -1)

    def missing(self, ids: Ids, what: str = "") -> Bool[Array, " images"]:
        """Which images are in no intact block, of equal ids only the first; `what` as above."""
        rows = np.flatnonzero(self.locate_intact(ids, what)[0] < 0)
        is_missing = np.zeros(len(ids), bool)
        is_missing[rows[np.unique(ids[rows], return_index=True)[1]]] = True
        return is_missing

    def read(self, ids: Ids) -> tuple[Bool[Array, " images"], Rows | None]:
        """Which of these images are in intact blocks, and their rows in this order; None if there are none."""
        numbers, rows = self.locate_intact(ids)
        is_found = numbers >= 0
        result: Rows | None = None
        for number in np.unique(numbers[is_found]).tolist():
            block, is_inside = self._block_rows(number), numbers == number
            if result is None:
                result = np.empty((len(ids), *block.shape[1:]), block.dtype)
            result[is_inside] = block[rows[is_inside]]
        return is_found, None if result is None else result[is_found]

    def rows_at(self, places: Places) -> list[Any]:
        """One row for each image, of blocks that were checked before."""
        return [self._block_rows(number)[row] for number, row in places.T.tolist()]

    def _check(self, number: int) -> bool:
        """Whether a block exists and is intact; a damaged one is deleted."""
        path = self._blocks[number]
        if path in self._intact:
            return True
        try:
            if not is_intact(path):
                self._discard(path)
                return False
            os.utime(path)
        except OSError as error:
            _log.info("%s cannot be read: %s", path, error)
            return False
        self._intact.add(path)
        return True

    def add(self, ids: Ids, rows: Rows) -> None:
        """Keep rows; they are on disk after `flush`."""
        if len(ids):
            self._waiting.append((ids, rows))
        if sum(waiting.nbytes for _, waiting in self._waiting) >= BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the rows that wait as one block."""
        if not self._waiting:
            return
        ids = np.concatenate([ids for ids, _ in self._waiting])
        rows = np.concatenate([rows for _, rows in self._waiting])
        self._waiting, blocks = [], self._blocks  # listed before the new block is on disk
        data = b"".join(npy_header(array.dtype, array.shape) + array.tobytes() for array in (ids, rows))
        path = self._path(ids)
        with replacing(path) as temporary:
            temporary.write_bytes(data + _digest(path, data))
        self._added.append(path)
        self._intact.add(path)
        if path not in blocks:
            blocks.append(path)
        self.__dict__.pop("index", None)
        self._on_growth()

    def remove_added(self) -> None:
        """Delete the blocks that this object has written."""
        for path in self._added:
            path.unlink(missing_ok=True)

    def lease(self) -> IO[Any]:
        """Keep the section from being deleted until the result is closed, or the process ends."""
        file = locked_file(self.folder / LEASE, is_shared=True)
        assert file is not None  # it waits for the lock
        return file

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

    def section(self, key: Mapping[str, Any], about: Mapping[str, str]) -> Section:
        """The section of a key; `about` is its summary for `sections`, one entry per column."""
        name = re.sub(r"[^\w.-]", "_", about["backbone"])
        folder = self.root / f"{name}-{hash_value([FORMAT, key], size=12)}"
        value = json.loads(json.dumps({"about": about, "key": key}))
        if _read_key(folder) != value:  # for `sections`: rows are found by the name of the folder
            if (folder / KEY).exists():
                _log.warning("%s is damaged; it is written again", folder / KEY)
            write_json(folder / KEY, value)
        return Section(folder, lambda: self.make_room(0))

    def sections(self) -> list[dict[str, Any]]:
        """Each section that holds anything: name, `about`, number of images or views, bytes, time of the last use."""
        sections = []
        for folder in self._folders():
            try:
                about, blocks = _read_key(folder)["about"], self._blocks([folder])
                section = {
                    "name": folder.name,
                    **{name: str(about[name]) for name in self.columns},
                    self.unit: sum(len(_open_block(path)[0]) for path, _ in blocks),
                    "bytes": sum(stat.st_size for _, stat in blocks),
                    "used": max((stat.st_mtime for _, stat in blocks), default=0.0),
                }
                sections += [section] if blocks else []
            except FileNotFoundError:  # another process has deleted it just now
                pass
            except (OSError, LookupError, AttributeError, *NOT_A_BLOCK) as error:
                _log.warning("%s cannot be read and is left out: %r", folder, error)
        return sections

    def clear(self, backbone: str | None = None, limit: int = 0) -> int:
        """Delete the blocks of a backbone, or of one section by its name, by default all; returns the bytes freed.

        With a limit only the least recently used blocks above it. Leased sections and files being written stay.
        """
        chosen = self._folders()
        if backbone is not None:
            sections = [each for each in self.sections() if backbone in (each["name"], each["backbone"])]
            chosen = [self.root / section["name"] for section in sections]
        return self._shrink(limit, chosen)

    def make_room(self, n_bytes: int) -> None:
        """Delete the least recently used blocks, as far as the limit requires it to add so many bytes."""
        if freed := self._shrink(max(0, self.limit - n_bytes), self._folders()):
            _log.warning(
                "%s of the least recently used in %s were deleted: at most %s are kept (%s)",
                size_text(freed),
                self.root,
                size_text(self.limit),
                self.variable,
            )

    def _shrink(self, limit: int, folders: Sequence[Path]) -> int:
        """Delete blocks until at most `limit` bytes are left, except those of leased sections; returns bytes freed."""
        blocks = self._blocks(folders)
        excess = sum(stat.st_size for _, stat in blocks) - limit
        freed = 0
        if excess <= 0:
            return 0
        with ExitStack() as locks:
            for folder in folders:
                lock = locked_file(folder / LEASE, wait=False)
                if lock is None:
                    blocks = [(path, stat) for path, stat in blocks if path.parent != folder]
                else:
                    locks.enter_context(lock)
            for path, stat in sorted(blocks, key=lambda block: block[1].st_mtime):
                if freed >= excess:
                    break
                path.unlink(missing_ok=True)
                freed += stat.st_size
        return freed

    def _blocks(self, folders: Sequence[Path]) -> list[tuple[Path, os.stat_result]]:
        blocks = []
        for folder in folders:
            for path in folder.glob(f"*{BLOCK}"):
                with suppress(FileNotFoundError):  # another process has deleted it just now
                    blocks.append((path, path.stat()))
        return blocks

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
