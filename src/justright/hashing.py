"""Fingerprints of bytes, files and plain values: BLAKE2b of 16 bytes, as hexadecimal text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SIZE = 16


def hash_bytes(data: bytes, size: int = SIZE) -> str:
    """The fingerprint of some bytes."""
    return hashlib.blake2b(data, digest_size=size).hexdigest()


def hash_pieces(pieces: Iterable[bytes | memoryview]) -> str:
    """The fingerprint of bytes that come in pieces; where they were cut does not matter."""
    digest = hashlib.blake2b(digest_size=SIZE)
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def hash_file(path: Path) -> str:
    """The fingerprint of a file's bytes, read piece by piece."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, lambda: hashlib.blake2b(digest_size=SIZE)).hexdigest()


def hash_value(value: Any, size: int = SIZE) -> str:
    """The fingerprint of a value that JSON can hold; the order of keys does not matter."""
    return hash_bytes(json.dumps(value, sort_keys=True).encode(), size)
