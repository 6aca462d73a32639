"""The view banks that are kept for later runs: what each is, what it takes, who uses it, and how to be rid of it.

A bank is made again when it is needed, so any of them may go, though not while a run reads it: leases tell that. They
also keep two runs from computing the same bank. Above a limit those go by themselves that were used longest ago.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import finalize

from justright.features.cache import parse_size
from justright.utils.files import bytes_of, home, parsed_json, size_text
from justright.utils.locks import Lock, ReaderLease, lock_unread

logger = logging.getLogger(__name__)

INDEX = "index.json"
DEFAULT_LIMIT = "100GB"


def hold(bank: Path, reader: object) -> finalize[Any, Any]:
    """Mark a bank as being read, until the result is called, the reader is garbage or the process ends.

    Waits while the bank is being deleted.
    """
    return finalize(reader, ReaderLease(bank).release)


@contextmanager
def alone(bank: Path) -> Iterator[bool]:
    """Whether nobody reads the bank, on any machine. Nobody can start to read it inside the block."""
    guard = lock_unread(bank)
    try:
        yield guard is not None
    finally:
        if guard is not None:
            guard.release()


@contextmanager
def building(bank: Path) -> Iterator[None]:
    """Let one process at a time build a bank: the second waits, and then finds what the first has built."""
    lock = Lock(bank.with_name(f".{bank.name}.in-build"), wait=True)
    try:
        bank.mkdir(exist_ok=True)
        yield
    finally:
        lock.release()


class KeptBanks:
    """All banks below `root`, by default those of the home.

    `limit` is a size such as `20GB`; by default JUSTRIGHT_BANK_LIMIT, or 100 GB.
    """

    def __init__(self, root: Path | None = None, limit: str | None = None):
        self.root = home() / "banks" if root is None else root
        self.limit = parse_size(limit or os.environ.get("JUSTRIGHT_BANK_LIMIT") or DEFAULT_LIMIT)

    def all(self) -> list[dict[str, Any]]:
        """Each bank: name, backbone, transform, precision, images, views, bytes, and when it was last used.

        One whose index cannot be read, as a killed build may leave it, has no backbone and no images.
        """
        found = []
        for folder in sorted(self.root.glob("*")):
            with suppress(FileNotFoundError):  # another process removes it at this moment
                found += [_about(folder)] if folder.is_dir() else []
        return found

    def clear(self, backbone: str | None = None, limit: int | None = None) -> int:
        """Remove the banks of a backbone (of all without a name), or only what is above `limit`; the bytes freed.

        Those that were used longest ago go first; one that a run reads now stays.
        """
        chosen = [bank for bank in self.all() if backbone in (None, bank["backbone"], bank["name"])]
        left = before = sum(bank["bytes"] for bank in chosen)
        for bank in sorted(chosen, key=lambda bank: float(bank["used"])):
            if limit is not None and left <= limit:
                break
            with alone(self.root / bank["name"]) as is_free:
                if is_free:
                    shutil.rmtree(self.root / bank["name"], ignore_errors=True)
            left -= bank["bytes"] - bytes_of(self.root / bank["name"])
        return before - left

    def make_room(self, n_bytes: int) -> None:
        """Remove what was used longest ago, as far as the limit asks for it, before so many bytes are added."""
        if freed := self.clear(limit=max(0, self.limit - n_bytes)):
            logger.warning(
                "%s of view banks that were used longest ago were removed: at most %s are kept (JUSTRIGHT_BANK_LIMIT)",
                size_text(freed),
                size_text(self.limit),
            )


def _about(folder: Path) -> dict[str, Any]:
    shards = list(folder.glob("rows*.npy"))
    read_or_written = [max(stat.st_mtime, stat.st_atime) for stat in map(Path.stat, shards)]
    return {
        "name": folder.name,
        **_said(folder / INDEX),
        "views": len({shard.name.split("-")[1] for shard in shards}),
        "bytes": bytes_of(folder),
        "used": max(read_or_written, default=folder.stat().st_mtime),
    }


def _said(index: Path) -> dict[str, Any]:
    """What the index says of a bank, or nothing."""
    try:
        about = parsed_json(index.read_text(encoding="utf-8"))
        return {
            "backbone": str(about["backbone"]),
            "transform": str(about["transform"]["kind"]).lower(),
            "precision": str(about["precision"]),
            "images": int(about["n_images"]),
        }
    except (OSError, ValueError, TypeError, KeyError) as error:
        if index.exists():  # else it has just been begun
            logger.warning("%s cannot be read: %s; `justright cache clear` removes it", index, error)
        return {"backbone": "", "transform": "", "precision": "", "images": 0}
