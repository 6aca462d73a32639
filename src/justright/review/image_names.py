"""The names of the images of a run in other tools: paths below one folder, and the image of such a path."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from justright.data import ImageSet
from justright.data.columns import CONTENT, nfc
from justright.data.readers import FolderReader, read_file
from justright.review.export import safe_part, split_name, unique_names
from justright.utils.hashing import hash_bytes

IMAGE_FOLDERS = (("images",), ("images", "default"), ("data",))  # where exports put images


class ImageNames:
    """One name per image, in the order of the run.

    Attributes:
        root: the folder that names start from; None if some images are no files, so that tools need copies.
        names: the path of each image below the root, with slashes.
    """

    def __init__(self, images: ImageSet):
        self.images = images
        self.root: Path | None = None
        readers = [images.readers[source] for source in images.table["source"].to_pylist()]
        roots = [str(each.root) for each in readers if isinstance(each, FolderReader)]
        if len(roots) == len(images):
            files = [os.path.normpath(os.path.join(root, path)) for root, path in zip(roots, images.paths, strict=True)]
            self.root = _common_root(set(roots), files)
        if self.root is not None:
            self.names = [os.path.relpath(file, self.root).replace(os.sep, "/") for file in files]
        else:
            parts = ([safe_part(part) for part in path.replace("\\", "/").split("/") if part] for path in images.paths)
            self.names = unique_names(split_name("/".join(each) or "_") for each in parts)

    def rows_of(self, name: str) -> list[int]:
        """The images that a tool calls `name`; empty if it is unknown, or could be several.

        It may start at the root, at any folder above it, or at a folder that an export wrote. A name without folders
        may leave out those of the image.
        """
        parts = [part for part in nfc(name).replace("\\", "/").split("/") if part not in ("", ".")]
        for start in range(len(parts)):
            rows = self._rows["name"].get("/".join(parts[start:]), [])
            if rows and self._is_above(tuple(parts[:start])):
                return rows
        rows = self._rows["last part"].get(parts[0], []) if len(parts) == 1 else []
        return rows if len({self.names[row] for row in rows}) == 1 else []

    def name_of_file(self, file: Path) -> str:
        """The name of the image that a link leads to or whose content a file has; its own path if there is none.

        Raises BadImageError if the file cannot be read.
        """
        if file.is_symlink() and (rows := self.rows_of(os.readlink(file)) or self.rows_of(os.path.realpath(file))):
            return self.names[rows[0]]
        rows = self._rows_by_content.get(hash_bytes(read_file(file, str(file))), [])
        for row in self._rows["file name"].get(nfc(file.name), []):
            if row in rows or not self.images.readers[self.images.table["source"][row].as_py()].has_files:
                return self.names[row]
        return self.names[rows[0]] if rows else str(file)

    def name_of_stem(self, stem: str) -> str:
        """The name of an image from its entry in `stems`, which may leave out folders; else the stem itself."""
        key = nfc(stem).replace("\\", "/")
        rows = self._rows["stem"].get(key) or self.rows_of(stem) or self._rows["last part of stem"].get(key, [])
        return self.names[rows[0]] if len(rows) == 1 else stem

    @cached_property
    def stems(self) -> list[str]:
        """For each image its name without the ending, made unique."""
        return unique_names((posixpath.splitext(name)[0], "") for name in self.names)

    @property
    def stem_files(self) -> list[str]:
        """The stem of each image with the ending of its name."""
        return [stem + posixpath.splitext(name)[1] for stem, name in zip(self.stems, self.names, strict=True)]

    @cached_property
    def file_names(self) -> list[str]:
        """For each image a unique name without folders, so that files of all can be in one folder."""
        return unique_names(posixpath.splitext(safe_part(posixpath.basename(name))) for name in self.names)

    @cached_property
    def _rows(self) -> dict[str, dict[str, list[int]]]:
        """The images by each kind of name."""
        return {
            "name": _rows_by(self.names),
            "last part": _rows_by(map(posixpath.basename, self.names)),
            "stem": _rows_by(self.stems),
            "last part of stem": _rows_by(map(posixpath.basename, self.stems)),
            "file name": _rows_by(self.file_names),
        }

    @cached_property
    def _rows_by_content(self) -> dict[str, list[int]]:
        return _rows_by(self.images.table[CONTENT].to_pylist())

    def _is_above(self, head: tuple[str, ...]) -> bool:
        """Whether a path may begin like this before the root."""
        above = () if self.root is None else tuple(nfc(part) for part in self.root.as_posix().split("/") if part)
        return head == above[len(above) - len(head) :] or head in IMAGE_FOLDERS


def _rows_by(names: Iterable[str]) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        rows.setdefault(nfc(name), []).append(row)
    return rows


def _common_root(roots: set[str], files: list[str]) -> Path | None:
    """The folder that holds all files: the one root of the run if it does, else the deepest that they share."""
    if len(roots) == 1 and all(Path(file).is_relative_to(root := next(iter(roots))) for file in files):
        return Path(root)
    try:
        return Path(os.path.commonpath([os.path.dirname(file) for file in files]))
    except ValueError:  # on several drives of Windows
        return None
