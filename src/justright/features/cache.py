"""Features that were computed once, kept by the content of the image: no source and no run computes them again.

    <home>/features/<backbone>-<key>/key.json     what all features in this folder were computed by
    <home>/features/<backbone>-<key>/             their blocks: a section, see cache_section.py

The key is made of everything that can change a byte of a feature: backbone, transform, pooling, precision, batch size,
device, versions. Any number of processes may share the folder. Above the size limit the blocks go that were used
longest ago.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from justright.features.cache_section import Block, CacheSection, blocks_of
from justright.utils.errors import DataError
from justright.utils.files import UNITS, home, parsed_json, remove_leftovers, write_json
from justright.utils.hashing import hash_value
from justright.utils.locks import EXPIRY, is_gone

logger = logging.getLogger(__name__)

DEFAULT_LIMIT = "20GB"


def parse_size(text: str) -> int:
    """The number of bytes that a size such as `10GB` means."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?B)\s*", text, re.IGNORECASE)
    if found is None:
        raise DataError(f"{text!r} is no size", expected="a number and a unit, such as 500MB or 10GB")
    return int(float(found[1]) * UNITS[found[2].upper()])


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
        name = re.sub(r"[^\w.-]", "_", str(key["backbone"]["name"]))
        folder = self.root / f"{name}-{hash_value(key, size=8)}"
        if _key_of(folder) != json.loads(json.dumps(key)):  # it tells people what is inside; features are found by name
            if (folder / "key.json").exists():
                logger.warning("%s is damaged; it is written again", folder / "key.json")
            write_json(folder / "key.json", key)

        def grow(n_bytes: int) -> None:
            if not (folder / "key.json").exists():  # another process has cleared the cache meanwhile
                write_json(folder / "key.json", key)
            self._grow(n_bytes)

        return CacheSection(folder, grow)

    def sections(self) -> list[dict[str, Any]]:
        """Each section: backbone, pooling, precision, images, bytes, and when it was last used (seconds of 1970)."""
        found = []
        for folder in self._folders():
            try:
                found.append(_about(folder))
            except (OSError, ValueError, EOFError, LookupError, TypeError, AttributeError) as error:
                logger.warning("%s cannot be read and is left out: %r", folder, error)
        return found

    def clear(self, backbone: str | None = None, limit: str | None = None) -> int:
        """Remove the sections of a backbone (of all without a name), or only what is above `limit`; the bytes freed.

        What another process is writing at this moment stays.
        """
        named = {backbone, *(each["name"] for each in self.sections() if each["backbone"] == backbone)}
        folders = [folder for folder in self._folders() if backbone is None or folder.name in named]
        before = sum(block.n_bytes for block in self._blocks())
        if limit is not None:
            self._shrink(parse_size(limit), [block for folder in folders for block in blocks_of(folder)])
        else:
            for folder in folders:
                _empty(folder)
        self.n_bytes = sum(block.n_bytes for block in self._blocks())
        return before - self.n_bytes

    def _grow(self, n_bytes: int) -> None:
        """Evict what is above the limit. The disk is looked at only when this process thinks it is."""
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
        return sorted(file.parent for file in self.root.glob("*/key.json"))

    def _blocks(self) -> Iterator[Block]:
        for folder in self._folders():
            yield from blocks_of(folder)


def _empty(folder: Path) -> None:
    """Remove a section, but for files that a process may be writing: temporary ones, and features without ids yet."""
    for block in blocks_of(folder):
        block.remove()
    remove_leftovers(folder)
    for file in folder.glob("*.npy"):
        if is_gone(file, EXPIRY):
            file.unlink(missing_ok=True)
    with suppress(OSError):  # another process writes into it, or has removed it
        if [file.name for file in folder.iterdir()] == ["key.json"]:
            (folder / "key.json").unlink(missing_ok=True)
            folder.rmdir()


def _key_of(folder: Path) -> Any:
    """What key.json says; None where it cannot be read."""
    try:
        return parsed_json((folder / "key.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _about(folder: Path) -> dict[str, Any]:
    key, blocks = _key_of(folder), list(blocks_of(folder))
    return {
        "name": folder.name,
        "backbone": key["backbone"]["name"],
        "pooling": key["backbone"].get("pooling", ""),
        "precision": key.get("computation", {}).get("precision", ""),
        "images": sum(len(np.load(block.ids, mmap_mode="r")) for block in blocks),
        "bytes": sum(block.n_bytes for block in blocks),
        "used": max((block.used for block in blocks), default=0.0),
    }
