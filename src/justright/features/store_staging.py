"""Stores that are written elsewhere: made whole in a folder of this machine, then copied, the header last.

A store of objects knows no appending. So until the last file is there a reader elsewhere finds no store, and a kill
loses nothing: the folder is found again by the address, and the work or the copying goes on.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from justright.features.home import home
from justright.features.store import FEATURES, HEADER, INDEX, QUARANTINE, SHARDS
from justright.features.store_header import DamagedStoreError, Header, StoreMismatchError
from justright.features.store_writer import begin_store
from justright.hashing import hash_bytes
from justright.remote import Place, RemotePath


def staged(place: Place, header: Header) -> tuple[Path, bool]:
    """The folder to write a store in that `begin_store` allowed, and whether all is there and only to be delivered."""
    if isinstance(place, Path):
        return place, False
    folder = home() / "staging" / hash_bytes(str(place).encode())
    try:
        return folder, begin_store(folder, header)
    except (StoreMismatchError, DamagedStoreError):  # of another time
        return folder, begin_store(folder, header, overwrite=True)


def deliver(folder: Path, place: Place) -> None:
    """Bring a finished store to its place."""
    if isinstance(place, RemotePath):
        for name in (FEATURES, SHARDS, INDEX, QUARANTINE, HEADER):
            (place / name).put(folder / name)
        shutil.rmtree(folder)
