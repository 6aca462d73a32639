"""What other tools call the images of a run: paths below one folder, and the way back from such a path to the image."""

from __future__ import annotations

import os
import posixpath
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from itertools import count
from pathlib import Path

import pyarrow.compute as pc

from justright.data import ImageSet
from justright.data.columns import CONTENT, nfc
from justright.data.folder import is_image_name
from justright.data.readers import FolderReader, read_file
from justright.review.export import first_free, safe_part
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
        readers = [images.readers[source] for source in images.table["source"].to_pylist()]
        roots = [str(each.root) for each in readers if isinstance(each, FolderReader)]
        self.root: Path | None = None
        if len(roots) == len(images):
            files = [os.path.normpath(os.path.join(root, path)) for root, path in zip(roots, images.paths, strict=True)]
            self.root = _common_root(set(roots), files)
        if self.root is not None:
            self.names = [os.path.relpath(file, self.root).replace(os.sep, "/") for file in files]
        else:
            self.names = _names_to_write(images.paths)

    def rows_of(self, name: str) -> list[int]:
        """The images that a tool calls `name`; empty if it is unknown, or could be several.

        It may start at the root, at any folder above it, or at a folder that an export wrote. A name without folders
        may leave out those of the image.
        """
        parts = [part for part in nfc(name).replace("\\", "/").split("/") if part not in ("", ".")]
        for start in range(len(parts)):
            rows = self._by_name.get("/".join(parts[start:]), [])
            if rows and self._is_above(tuple(parts[:start])):
                return rows
        rows = self._by_last.get(parts[0], []) if len(parts) == 1 else []
        return rows if len({self.names[row] for row in rows}) == 1 else []

    def name_of_file(self, file: Path) -> str:
        """The name of the image that a link leads to or whose content a file has; its own path if there is none.

        Raises BadImageError if the file cannot be read.
        """
        if file.is_symlink() and (rows := self.rows_of(os.readlink(file)) or self.rows_of(os.path.realpath(file))):
            return self.names[rows[0]]
        rows = self._by_content.get(hash_bytes(read_file(file, str(file))), [])
        named = self._by_file_name.get(file.name)
        if named is not None and (named in rows or not self._has_file(named)):
            return self.names[named]
        return self.names[rows[0]] if rows else str(file)

    def name_of_stem(self, stem: str) -> str:
        """The name of an image from the key that `stems` gives it, which may leave out folders; else the key itself."""
        key = nfc(stem).replace("\\", "/")
        rows = self._by_stem.get(key) or self.rows_of(stem) or self._by_last_of_stem.get(key, [])
        return self.names[rows[0]] if len(rows) == 1 else stem

    @cached_property
    def stems(self) -> list[str]:
        """For each image a key that no other has: its name without the ending."""
        taken: set[str] = set()
        return [_numbered(posixpath.splitext(name)[0], "", row, taken) for row, name in enumerate(self.names)]

    @cached_property
    def file_names(self) -> list[str]:
        """For each image a name without folders that no other has, so that files of all can be in one folder."""
        taken: set[str] = set()
        split = (posixpath.splitext(safe_part(posixpath.basename(name))) for name in self.names)
        return [_numbered(stem, ending, row, taken) for row, (stem, ending) in enumerate(split)]

    @cached_property
    def _by_file_name(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.file_names)}

    def _has_file(self, row: int) -> bool:
        return self.images.readers[self.images.table["source"][row].as_py()].has_files

    @cached_property
    def _by_stem(self) -> dict[str, list[int]]:
        return _rows_by(map(nfc, self.stems))

    @cached_property
    def _by_last_of_stem(self) -> dict[str, list[int]]:
        return _rows_by(nfc(posixpath.basename(stem)) for stem in self.stems)

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        return _rows_by(map(nfc, self.names))

    @cached_property
    def _by_last(self) -> dict[str, list[int]]:
        return _rows_by(nfc(posixpath.basename(name)) for name in self.names)

    @cached_property
    def _by_content(self) -> dict[str, list[int]]:
        table = self.images.table
        return _rows_by(pc.coalesce(table[CONTENT], table["id"]).to_pylist())

    def _is_above(self, head: tuple[str, ...]) -> bool:
        """Whether a path may begin like this before the root."""
        above = () if self.root is None else tuple(nfc(part) for part in self.root.as_posix().split("/") if part)
        return head == above[len(above) - len(head) :] or head in IMAGE_FOLDERS


def _rows_by(keys: Iterable[str]) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for row, key in enumerate(keys):
        found[key].append(row)
    return found


def _common_root(roots: set[str], files: list[str]) -> Path | None:
    """The folder that holds all files: the one root of the run if it does, else the deepest that they share."""
    if len(roots) == 1 and all(Path(file).is_relative_to(root := next(iter(roots))) for file in files):
        return Path(root)
    try:
        return Path(os.path.commonpath([os.path.dirname(file) for file in files]))
    except ValueError:  # on several drives of Windows
        return None


def _names_to_write(paths: list[str]) -> list[str]:
    """Names under which images that are no files can be written, each once."""
    taken: set[str] = set()
    names = []
    for row, path in enumerate(paths):
        parts = [safe_part(part) for part in path.replace("\\", "/").split("/") if part] or ["_"]
        stem, ending = posixpath.splitext("/".join(parts)) if is_image_name(path) else ("/".join(parts), ".png")
        names.append(_numbered(stem, ending, row, taken))
    return names


def _numbered(stem: str, ending: str, row: int, taken: set[str]) -> str:
    """The name, with the number of its image if it is taken."""
    return first_free(stem + ending, (f"{stem}-{row}{'_' * n}{ending}" for n in count()), taken)
