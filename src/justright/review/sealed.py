"""JSON on one line that ends in a checksum of the rest, and a number kept in a file in that way."""

from __future__ import annotations

import json
import logging
import re
import zlib
from pathlib import Path
from typing import Any

from justright.utils.files import parsed_json, replacing

CHECKSUM = re.compile(rb',"crc":"([0-9a-f]{8})"\}$')

logger = logging.getLogger(__name__)


def sealed(value: dict[str, Any]) -> bytes:
    """The value as a line of JSON, with its checksum."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()[:-1]
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


def unsealed(line: bytes) -> dict[str, Any] | None:
    """The value of a line, without its line break; None where the checksum is not there or not right.

    ValueError for a checksum that is right on what is no JSON: somebody made that by hand.
    """
    found = CHECKSUM.search(line)
    if found is None or zlib.crc32(line[: found.start()]) != int(found[1], 16):
        return None
    value: dict[str, Any] = parsed_json(line[: found.start()] + b"}")
    return value


def write_count(path: Path, n: int) -> None:
    """Note how many actions were answered, which the log must hold at least, in a file of its own.

    What it is about is on disk already, so that a failure is only told; and it is not waited for until the number is
    on disk, for a smaller one than the true one is no error.
    """
    try:
        with replacing(path, is_flushed=False) as temporary:
            temporary.write_bytes(sealed({"saved": n}))
    except OSError as error:
        logger.warning("%s could not be written: %s", path, error)


def read_count(path: Path) -> int | None:
    """The number that was noted; None where there is none, or a damaged one."""
    try:
        value = unsealed(path.read_bytes().rstrip(b"\n"))
        n = value and value.get("saved")
    except FileNotFoundError:
        return None
    except ValueError:
        n = None
    if not isinstance(n, int):
        logger.warning("%s is damaged; the next action writes it anew", path)
        return None
    return n
