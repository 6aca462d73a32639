"""The records of a store's finished shards: how many rows, their checksum, the bad images among them.

Each line carries a check of itself, of its number and of the header of the store. So a changed line, a line in another
place, and the lines of another store are all seen.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from justright.features.store_header import Header
from justright.utils.files import parsed_json
from justright.utils.hashing import hash_value
from justright.utils.remote import Place


@dataclass(frozen=True)
class Shard:
    """A finished range of the array. `bad` gives kind and reason by the position of a bad image in its source."""

    n_rows: int
    crc32: int
    bad: Mapping[int, tuple[str, str]]


def shard_line(shard: Shard, number: int, header: Header) -> bytes:
    """The record of a shard as `read_shards` reads it."""
    said = [shard.n_rows, shard.crc32, [[row, kind, reason] for row, (kind, reason) in shard.bad.items()]]
    return json.dumps([*said, _check(said, number, header)]).encode() + b"\n"


def read_shards(file: Place, header: Header) -> list[Shard]:
    """The records of finished shards up to the first that is not whole, as a kill may leave the last."""
    shards: list[Shard] = []
    for number, line in enumerate(file.read_bytes().split(b"\n")[:-1]):
        try:
            *said, check = parsed_json(line)
            if check != _check(said, number, header):
                break
            n_rows, crc32, bad = said
            shards.append(Shard(int(n_rows), int(crc32), {int(row): (kind, reason) for row, kind, reason in bad}))
        except (ValueError, TypeError):
            break
    return shards


def n_intact(file: Any, row_bytes: int, shards: Sequence[Shard]) -> int:
    """How many shards, from the first on, have the bytes that their records say; `file` stands before the first."""
    for number, shard in enumerate(shards):
        data = file.read(shard.n_rows * row_bytes)
        if zlib.crc32(data) != shard.crc32 or len(data) != shard.n_rows * row_bytes:
            return number
    return len(shards)


def _check(said: Sequence[object], number: int, header: Header) -> str:
    return hash_value([asdict(header), number, said], size=8)
