"""Fingerprints of bytes, files and plain values: BLAKE2b of 16 bytes, as hexadecimal text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

SIZE = 16
BLOCK = 1 << 16  # values that are turned into a list at once
SIGNATURE = "own_checksum"
"""The key of the checksum in a signed value."""


def hash_bytes(data: bytes, size: int = SIZE) -> str:
    """The fingerprint of some bytes."""
    return hashlib.blake2b(data, digest_size=size).hexdigest()


def hash_pieces(pieces: Iterable[bytes | memoryview]) -> str:
    """The fingerprint of bytes in pieces; it does not depend on the cuts."""
    digest = hashlib.blake2b(digest_size=SIZE)
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def hash_file(path: Any) -> str:
    """The fingerprint of a file's bytes, read piece by piece; the path may be one of this machine or a remote one."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, lambda: hashlib.blake2b(digest_size=SIZE)).hexdigest()


def hash_value(value: Any, size: int = SIZE) -> str:
    """The fingerprint of a value that JSON can hold; the order of keys does not matter."""
    return hash_bytes(json.dumps(value, sort_keys=True).encode(), size)


def in_blocks(values: Any, size: int = BLOCK) -> Iterator[list[Any]]:
    """Yield a long numpy array or arrow column as plain lists, one block at a time."""
    for start in range(0, len(values), size):
        block = values[start : start + size]
        yield block.tolist() if hasattr(block, "tolist") else block.to_pylist()


def hash_list(blocks: Iterable[list[Any]]) -> str:
    """`hash_value` of a long list that comes in blocks; one block at a time is in memory."""

    def pieces() -> Iterator[bytes]:
        yield b"["
        separator = ""
        for block in filter(None, blocks):
            yield (separator + json.dumps(block)[1:-1]).encode()
            separator = ", "
        yield b"]"

    return hash_pieces(pieces())


def signed(value: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON value with a checksum of itself."""
    plain = json.loads(json.dumps({name: part for name, part in value.items() if name != SIGNATURE}))
    return plain | {SIGNATURE: hash_value(plain)}


def verified(value: Mapping[str, Any]) -> dict[str, Any]:
    """A signed value without its checksum; ValueError if the checksum is missing or does not match."""
    plain = {name: part for name, part in value.items() if name != SIGNATURE}
    with suppress(RecursionError):  # nested too deeply to have been signed
        if value.get(SIGNATURE) == hash_value(plain):
            return plain
    raise ValueError("its checksum does not match: it was changed or damaged")
