"""Readers: where the pixels of an ImageSet come from, such as a folder, a zip or a column of bytes.

A reader turns the `path` of a row into an image. The row also holds the reader's `source` ("folder:/photos"), so that
one table can list images from many places and be saved.
"""

from __future__ import annotations

import io
import os
import stat
import threading
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from PIL import Image

from justright.data.decoding import MAX_PIXELS, decode
from justright.utils.errors import BadImageError, BadKind, DataError, MissingDataError
from justright.utils.hashing import hash_bytes

MAX_FILE_BYTES = 6 * MAX_PIXELS  # an image of the most pixels, three channels of 16 bits, not compressed
READ_BYTES = 1 << 20  # per read: zipfile keeps what it unpacks in one read twice in memory
# Content ids computed by this process, by source, path and file version, so that no file is read twice for its id.
# Ids that came with a table are never in here. Keys and values are digests: there may be millions.
HASHED: dict[bytes, bytes] = {}


class Reader:
    """Read images by path. A subclass defines `encoded` or `image`; each is derived from the other by default."""

    source: str  # the entry in the table: a kind, a colon, and where
    has_files = False  # whether the images are files of the user, which may change between two runs

    def encoded(self, path: str) -> bytes:
        """The image as the bytes of a file, by default a PNG; raises BadImageError with the reason."""
        buffer = io.BytesIO()
        self.image(path).save(buffer, "PNG")
        return buffer.getvalue()

    def saved_as(self, folder: Path) -> str | None:
        """The source as written into a table in `folder`, relative to it: both can move together.

        None if the pixels must be written into that table.
        """
        return None

    def image(self, path: str) -> Image.Image:
        """The decoded image, RGB; raises BadImageError with the reason."""
        return decode(self.encoded(path), path)

    def content(self, path: str) -> bytes:
        """The bytes whose hash is the content id, by default those of the file."""
        return self.encoded(path)

    def content_id(self, path: str) -> str:
        """Hash of the content, computed once for each version of an image."""
        version = self.version(path)  # before reading, so that a file that changes meanwhile is hashed again
        if version is None:
            return hash_bytes(self.content(path))
        key = bytes.fromhex(hash_bytes(repr((self.source, path, version)).encode()))
        if key not in HASHED:
            HASHED[key] = bytes.fromhex(hash_bytes(self.content(path)))
        return HASHED[key].hex()

    def version(self, path: str) -> Any:
        """A value that changes whenever the content does, known without reading it; None if there is none."""
        return None


def file_version(file: Path) -> tuple[int, ...] | None:
    """Size, times and inode of a file, which differ after every change; None if there is no file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


class FolderReader(Reader):
    """Files below a folder."""

    has_files = True

    def __init__(self, root: Path):
        self.root = root
        self.source = f"folder:{root}"

    def encoded(self, path: str) -> bytes:
        return read_file(self.root / path, path)

    def version(self, path: str) -> Any:
        return file_version(self.root / path)

    def saved_as(self, folder: Path) -> str:
        return f"folder:{os.path.relpath(self.root, folder)}"


class ZipReader(Reader):
    """Members of a zip, read without unpacking it; threads and processes may share a reader."""

    has_files = True

    def __init__(self, archive: Path):
        self.archive = archive
        self.source = f"zip:{archive}"
        self._local = threading.local()  # a handle per thread: zipfile moves a file position

    def __reduce__(self) -> tuple[Any, ...]:
        return ZipReader, (self.archive,)

    def encoded(self, path: str) -> bytes:
        try:
            info = self._handle().getinfo(path)
            with self._handle().open(info) as member:
                return read_all(member, info.file_size, path)
        except KeyError as error:
            raise BadImageError(f"{path}: not in {self.archive.name}", BadKind.MISSING) from error
        except DataError:
            raise
        except Exception as error:  # each compression method raises its own errors for damage
            raise BadImageError(f"{path}: damaged inside {self.archive.name} ({error})") from error

    def _handle(self) -> zipfile.ZipFile:
        if getattr(self._local, "pid", None) != os.getpid():  # a fork inherits the parent's handle
            self._local.pid, self._local.handle = os.getpid(), open_zip(self.archive)
        handle: zipfile.ZipFile = self._local.handle
        return handle

    def version(self, path: str) -> Any:
        return file_version(self.archive)

    def saved_as(self, folder: Path) -> str:
        return f"zip:{os.path.relpath(self.archive, folder)}"


class BytesReader(Reader):
    """Encoded images in a column of a saved table."""

    def __init__(self, name: str, images: pa.ChunkedArray):
        self.images = images
        self.source = f"bytes:{name}"

    def encoded(self, path: str) -> bytes:
        if not (path.isdecimal() and path.isascii() and int(path) < len(self.images)):
            raise BadImageError(f"{path}: no such image in {self.source}", BadKind.MISSING)
        image = self.images[int(path)]
        if not image.is_valid:
            return b""
        _reject_large(image.as_buffer().size, path)
        return image.as_py()


def read_file(file: Path, name: str) -> bytes:
    """Read an image file; errors call it `name`. A file too large for an image is rejected unread."""
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):  # reading a pipe would wait forever
            raise BadImageError(f"{name}: cannot be read (a folder, a pipe or a device)")
        with file.open("rb") as opened:
            return read_all(opened, status.st_size, name)
    except OSError as error:
        kind = BadKind.MISSING if isinstance(error, FileNotFoundError) else BadKind.UNREADABLE
        raise BadImageError(f"{name}: cannot be read ({error.strerror or error})", kind) from error


def read_all(file: Any, size: int, name: str) -> bytes:
    """Read an open file of the stated size, piece by piece; one too large for an image is rejected unread."""
    _reject_large(size, name)
    data = io.BytesIO()
    while piece := file.read(READ_BYTES):
        _reject_large(data.tell() + len(piece), name)  # it may grow meanwhile
        data.write(piece)
    return data.getvalue()


def _reject_large(n_bytes: int, name: str) -> None:
    if n_bytes > MAX_FILE_BYTES:
        raise BadImageError(
            f"{name}: too large, {n_bytes:,} bytes", BadKind.TOO_LARGE, expected=f"at most {MAX_FILE_BYTES:,}"
        )


def open_zip(archive: Path) -> zipfile.ZipFile:
    """Open a zip; raises DataError with the reason."""
    try:
        return zipfile.ZipFile(archive)
    except FileNotFoundError as error:
        raise MissingDataError(f"no such file: {archive}") from error
    except Exception as error:  # zipfile raises many kinds of errors for damaged bytes
        raise DataError(f"{archive} cannot be opened: {error}", expected="a zip file") from error
