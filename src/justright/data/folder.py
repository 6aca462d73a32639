"""A class-per-folder tree as an ImageSet."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from justright.data.columns import levels_of
from justright.data.image_set import ImageSet
from justright.data.readers import FolderReader
from justright.errors import DataError, MissingDataError
from justright.types import UNLABELED

IMAGE_SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".avif", ".jp2"}
)
MAX_WAYS = 100  # more ways to one folder are refused: folders that link each other have more names than one can read


def open_folder(root: Path, dataset: str | None = None) -> ImageSet:
    """Every image below `root`; its class is the folder it lies in.

    Folders above a class are its super-categories (`birds/gulls/herring_gull/1.jpg`), and its name is then the whole
    way (`birds/gulls/herring_gull`), because two branches may use one word. Images directly in `root` have no class.
    Classes and files are sorted by name, as torchvision's ImageFolder does.
    """
    if not root.is_dir():
        raise MissingDataError(f"no such folder: {root}")
    paths = [path for path in walk(root) if is_image_name(path)]
    strange = next((path for path in paths if not path.isascii() and "\\udc" in ascii(path)), None)
    if strange is not None:
        raise DataError(f"the file name {strange!r} in {root} is not UTF-8", advice="rename the file")
    if not paths:
        raise DataError(
            f"no images in {root}",
            expected=f"files that end in {', '.join(sorted(IMAGE_SUFFIXES))}, one folder a class",
            advice="give the folder that holds the class folders",
        )
    return ImageSet.of(FolderReader(root.absolute()), dataset=dataset or root.resolve().name, **columns_of(paths))


def columns_of(paths: list[str]) -> dict[str, Any]:
    """Path, label, class name and super-categories of files in class folders, sorted as ImageFolder sorts."""
    order = sorted(paths, key=lambda path: (os.path.dirname(path), path))
    where = [os.path.dirname(path) for path in order]
    label_of = {folder: label for label, folder in enumerate(sorted({*where} - {""}))} | {"": UNLABELED}
    return {
        "path": order,
        "label": [label_of[folder] for folder in where],
        "class_name": [folder or None for folder in where],
        "superclasses": levels_of([folder.split("/")[:-1] for folder in where]),
    }


def is_image_name(path: str) -> bool:
    """Whether the file's ending says that it is an image."""
    return os.path.splitext(path)[1].lower() in IMAGE_SUFFIXES


def walk(root: Path) -> Iterator[str]:
    """Every file below `root`, as a path relative to it, hidden ones left out. Links are followed, circles are not."""
    pending: list[tuple[str, tuple[str, ...], int]] = [("", (os.path.realpath(root),), 0)]
    ways: Counter[str] = Counter()
    while pending:
        folder, chain, n_links = pending.pop()
        for entry in _entries(root, folder):
            inside = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name.startswith("."):
                continue
            if not _is_folder(entry):
                yield inside
                continue
            is_link, real = entry.is_symlink(), os.path.join(chain[-1], entry.name)
            n_inside = n_links + is_link
            if is_link:
                real = os.path.realpath(real)
            if real in chain:
                continue
            ways[real] += n_inside > 1  # one link is a folder under a second name; links inside links multiply
            if ways[real] > MAX_WAYS:
                raise DataError(
                    f"links in {root} lead to {real} in more than {MAX_WAYS} ways, one of them {inside}",
                    expected="linked folders that do not hold links to each other",
                    advice="remove those links, or list the images in a table",
                )
            pending.append((inside, (*chain, real), n_inside))


def _entries(root: Path, folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(os.path.join(root, folder)) as found:
            return list(found)
    except FileNotFoundError:
        if folder:  # removed while the tree was read
            return []
        raise
    except OSError as error:
        came = f"the folder {os.path.join(root, folder)} cannot be read: {error.strerror or error}"
        raise DataError(came, advice="allow reading it, or leave it out") from error


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself, or to where one may not look: said when the file is read
        return False
