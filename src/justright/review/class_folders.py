"""Images as class folders, as links or copies, under names that every file system takes."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from itertools import chain, count
from pathlib import Path

from justright.data import ImageSet
from justright.data.folder import is_image_name
from justright.data.readers import FolderReader
from justright.utils.errors import DataError

UNSAFE = re.compile(r'[\x00-\x1f\x7f\\:*?"<>|]')
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
MAX_BYTES = 120  # of one part of a path; file systems take 255, and a number may follow


def write_class_folders(images: ImageSet, root: Path, *, is_copy: bool = False) -> None:
    """One folder a class below `root`, which must be new or empty; it appears when it is complete.

    Links lead to the image where it lies as a file; an image inside a zip or a table is written out.
    """
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise DataError(f"{root} is not empty", expected="a new or empty folder", advice="choose another name")
    root.parent.mkdir(parents=True, exist_ok=True)
    folder_of = safe_folders(images.classes.values())
    building = Path(tempfile.mkdtemp(prefix=f".{root.name}.", dir=root.parent))
    try:
        taken = {folder.casefold() for folder in folder_of.values()}  # a file must not stand where a folder goes
        for row, (path, label) in enumerate(zip(images.paths, images.labels.tolist(), strict=True)):
            name = safe_part(os.path.basename(path))
            stem, ending = os.path.splitext(name) if is_image_name(path) else (name, ".png")
            start = f"{folder_of[images.classes[label]]}/{stem}"
            others = (f"{start}-{row}{'_' * n}{ending}" for n in count())
            place = building / _first_free(start + ending, others, taken)
            place.parent.mkdir(parents=True, exist_ok=True)
            reader = images.readers[images.table["source"][row].as_py()]
            if not is_copy and isinstance(reader, FolderReader):
                place.symlink_to((reader.root / path).absolute())
            else:
                place.write_bytes(images.encoded(row))
        building.chmod(0o755)
        building.replace(root)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def safe_folders(class_names: Iterable[str]) -> dict[str, str]:
    """A folder for each class name; a slash makes a folder inside a folder, as `open_images` reads it back.

    Names that differ only in what a file system does not keep apart get a number.
    """
    folders: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(class_names):
        wanted = "/".join(safe_part(part) for part in name.split("/"))
        folders[name] = _first_free(wanted, (f"{wanted} ({number})" for number in count(2)), taken)
    return folders


def safe_part(text: str) -> str:
    """A name for one file or folder: no way up, nothing hidden, nothing a file system refuses."""
    text = UNSAFE.sub("_", text).strip().rstrip(". ")
    text = re.sub(r"^\.", "_", text) or "_"
    if RESERVED.fullmatch(text):
        text = f"_{text}"
    if len(text.encode()) <= MAX_BYTES:
        return text
    stem, ending = os.path.splitext(text)
    return stem.encode()[: MAX_BYTES - len(ending.encode())].decode(errors="ignore") + ending


def _first_free(wanted: str, others: Iterable[str], taken: set[str]) -> str:
    """The name wanted, or the first of others that is not taken, whatever its letters' case; then that is taken."""
    free = next(name for name in chain([wanted], others) if name.casefold() not in taken)
    taken.add(free.casefold())
    return free
