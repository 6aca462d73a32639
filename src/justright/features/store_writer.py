"""Writing a feature store: begun or continued, grown by whole shards, and complete once `finish` has returned.

A store elsewhere (an address of fsspec) is made whole in a folder of this machine, then copied, the header last, for
storage of that kind cannot append. Until the last file is there a reader elsewhere finds no store, and a kill loses
nothing: the folder is found again by the address, and the work or the copying goes on.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO
from weakref import finalize

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from jaxtyping import Int

from justright.data.quarantine import Quarantined
from justright.features import store
from justright.features.store_header import DamagedStoreError, Header, StoreMismatchError, indented
from justright.features.store_shards import Shard, n_intact, read_shards, shard_line
from justright.utils.errors import DataError
from justright.utils.files import home, replacing, write_json
from justright.utils.hashing import hash_bytes
from justright.utils.locks import Lock, LockedError
from justright.utils.remote import Place, RemotePath
from justright.utils.types import Array

INDEX_ROWS = 16_384  # small row groups keep the memory of writing them small


def expect_place(path: Place, header: Header, overwrite: bool = False, parts: Sequence[str] = ()) -> bool:
    """Refuse a place where something else lies than features of this header, or of these parts of it.

    True if they are complete there.
    """
    if isinstance(path, Path) and path.exists() and not _may_be_store(path):
        raise DataError(f"{path} exists and is no feature store", advice="name another place with --out")
    if overwrite or not (path / store.HEADER).exists():
        return False
    there, is_complete = store.read_header(path)
    if lines := there.differences(header, parts):
        raise StoreMismatchError(
            f"{path} holds other features. Differences (stored, requested):\n" + indented(lines),
            advice="name another place with --out, or replace it with --overwrite",
        )
    return is_complete


def begin_store(path: Place, header: Header, overwrite: bool = False) -> bool:
    """Make sure that the directory is the store of this header, new or begun; True if it is complete already."""
    is_complete = expect_place(path, header, overwrite)
    if (path / store.HEADER).exists():
        if not overwrite:
            return is_complete
        for name in store.FILES:
            (path / name).unlink(missing_ok=True)
    if isinstance(path, Path):
        store.write_header(path, header, is_complete=False)
        return False
    folder = _folder_of(path)
    try:
        is_complete = begin_store(folder, header)
    except (StoreMismatchError, DamagedStoreError):  # of another time
        is_complete = begin_store(folder, header, overwrite=True)
    if is_complete:
        _copy(folder, path)
    return is_complete


def _may_be_store(path: Path) -> bool:
    return path.is_dir() and ((path / store.HEADER).exists() or not any(path.glob("[!.]*")))


def _folder_of(place: Place) -> Path:
    """Where on this machine a store is written."""
    return place if isinstance(place, Path) else home() / "staging" / hash_bytes(str(place).encode())


def _copy(folder: Path, place: RemotePath) -> None:
    """Bring a finished store to its place elsewhere."""
    for name in (store.FEATURES, *store.HASHED, store.HEADER):
        (place / name).put(folder / name)
    shutil.rmtree(folder)


class StoreWriter:
    """Grows a store that `begin_store` found unfinished; what was whole is kept, and `shards` lists it.

    Two writers of one store at a time are refused.
    """

    def __init__(self, place: Place, header: Header):
        self.place, self.header = place, header
        self.path = path = _folder_of(place)
        self._is_finished = False
        try:
            self._release = finalize(self, Lock(path / ".writer").release)
        except LockedError as error:
            advice = "wait for it, or name another --out"
            raise DataError(f"{place} is being written by {error}", advice=advice) from error
        self._lines: IO[bytes] = _opened(path / store.SHARDS)
        self._array: IO[bytes] = _opened(path / store.FEATURES)
        beginning, row_bytes = store.npy_header(0, header), store.row_bytes(header)
        self._array.write(beginning)
        found = read_shards(path / store.SHARDS, header)
        self.shards = found[: n_intact(self._array, row_bytes, found)]
        self.n_rows = sum(shard.n_rows for shard in self.shards)
        self._array.truncate(self._array.seek(len(beginning) + self.n_rows * row_bytes))
        self._lines.truncate(self._lines.seek(sum(map(len, map(self._line, range(len(self.shards)))))))

    def add(self, features: store.FeatureRows, bad: Mapping[int, tuple[str, str]]) -> None:
        """Append a shard. From the return on, a kill does not lose it."""
        data = np.ascontiguousarray(features, dtype=self.header.dtype).tobytes()
        shard = Shard(len(features), zlib.crc32(data), bad)
        self._array.write(data)
        self._array.flush()
        # no fsync: a record without its data, which only a power cut can leave, shows in the checksum
        self.shards.append(shard)
        self._lines.write(self._line(len(self.shards) - 1))
        self._lines.flush()
        self.n_rows += shard.n_rows

    def _line(self, number: int) -> bytes:
        return shard_line(self.shards[number], number, self.header)

    def read(self, rows: Int[Array, " rows"]) -> store.FeatureRows:
        """Features that were written before."""
        return np.array(store.mapped(self.path, self.header, 0, self.n_rows)[rows])

    def finish(self, index: pa.Table, quarantined: Sequence[Quarantined]) -> None:
        """Write what goes with the features, and call the store complete."""
        with replacing(self.path / store.INDEX) as temporary:
            pq.write_table(index, temporary, row_group_size=INDEX_ROWS, write_page_checksum=True)
        write_json(self.path / store.QUARANTINE, [image.to_json() for image in quarantined])
        self._array.seek(0)
        self._array.write(store.npy_header(self.n_rows, self.header))
        for file in (self._array, self._lines):
            file.flush()
            os.fsync(file.fileno())
        store.write_header(self.path, self.header, is_complete=True)
        self._is_finished = True

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._array.close()
        self._lines.close()
        if self._is_finished and isinstance(self.place, RemotePath):
            _copy(self.path, self.place)
        self._release()


def _opened(file: Path) -> IO[bytes]:
    file.touch()
    return file.open("r+b")
