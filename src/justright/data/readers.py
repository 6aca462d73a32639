"""Where the pixels of an ImageSet come from: a folder, a zip, a column of bytes, an object in memory, a drawing.

A reader turns the `path` of a row into an image. Its `source` ("folder:/photos") stands in the row, so that
one table can hold images from many places and a saved table finds them again.
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

from justright.data.decoding import MAX_PIXELS, NOT_AN_IMAGE, decode, is_image_start
from justright.utils.errors import BadImageError, BadKind, DataError, MissingDataError
from justright.utils.hashing import hash_bytes

# A larger file is refused unread: the most pixels, three channels of 16 bits, nothing compressed.
MAX_FILE_BYTES = 6 * MAX_PIXELS
LARGE_FILE_BYTES = 1 << 24  # of a larger file the first bytes must be those of an image before the rest is read
READ_BYTES = 1 << 20  # per read: zipfile holds what it unpacks in one read twice in memory
# Content ids of what this process has hashed, by source, path and version: no file is read twice for its id. Only what
# a reader computed itself is in here, never an id that came with a table. Both are digests: there may be millions.
HASHED: dict[bytes, bytes] = {}


class Reader:
    """Finds images by path. A kind of reader says what `encoded` or `image` gives; the other one is made of it."""

    source: str  # what stands in the table: a kind, a colon, and where
    has_files = False  # whether images are files of the user, which may change between two runs

    def encoded(self, path: str) -> bytes:
        """The image as a file would hold it, by default a PNG; BadImageError with a reason where there is none."""
        buffer = io.BytesIO()
        self.image(path).save(buffer, "PNG")
        return buffer.getvalue()

    def saved_as(self, folder: Path) -> str | None:
        """The source as a table saved in `folder` names it; None if the pixels must go into that table."""
        return None

    def image(self, path: str) -> Image.Image:
        """The decoded image, RGB; BadImageError with a reason otherwise."""
        return decode(self.encoded(path), path)

    def content_id(self, path: str) -> str:
        """A name made of the content: equal content, equal id. Computed once for each version of a file."""
        version = self.version(path)  # before the reading: what changes in between is another version
        if version is None:
            return hash_bytes(self.encoded(path))
        key = bytes.fromhex(hash_bytes(repr((self.source, path, version)).encode()))
        if key not in HASHED:
            HASHED[key] = bytes.fromhex(hash_bytes(self.encoded(path)))
        return HASHED[key].hex()

    def version(self, path: str) -> Any:
        """A value that changes whenever the content does, found without reading it; None if there is no such value."""
        return None


def file_version(file: Path) -> tuple[int, ...] | None:
    """What the file system says of a file that is another after every change; None where there is no file."""
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
        """The bytes of the file."""
        return read_file(self.root / path, path)

    def version(self, path: str) -> Any:
        """Size, times and number of the file."""
        return file_version(self.root / path)

    def saved_as(self, folder: Path) -> str:
        """The root, relative to the saved table: both can move together."""
        return f"folder:{os.path.relpath(self.root, folder)}"


class ZipReader(Reader):
    """Members of a zip, read without unpacking; threads and processes may share it."""

    has_files = True

    def __init__(self, archive: Path):
        self.archive = archive
        self.source = f"zip:{archive}"
        self._local = threading.local()  # a handle each: zipfile moves a file position

    def __reduce__(self) -> tuple[Any, ...]:
        return ZipReader, (self.archive,)

    def encoded(self, path: str) -> bytes:
        """The bytes of the member."""
        try:
            info = self._handle().getinfo(path)
            with self._handle().open(info) as member:
                return read_image(member, info.file_size, path)
        except KeyError as error:
            raise BadImageError(f"{path}: not in {self.archive.name}", BadKind.MISSING) from error
        except DataError:
            raise
        except Exception as error:  # each way of packing has errors of its own for damage
            raise BadImageError(f"{path}: damaged inside {self.archive.name} ({error})") from error

    def _handle(self) -> zipfile.ZipFile:
        if getattr(self._local, "pid", None) != os.getpid():  # a fork inherits the parent's handle
            self._local.pid, self._local.handle = os.getpid(), open_zip(self.archive)
        handle: zipfile.ZipFile = self._local.handle
        return handle

    def version(self, path: str) -> Any:
        """Size, times and number of the archive."""
        return file_version(self.archive)

    def saved_as(self, folder: Path) -> str:
        """The archive, relative to the saved table."""
        return f"zip:{os.path.relpath(self.archive, folder)}"


class BytesReader(Reader):
    """Encoded images that a saved table holds itself."""

    def __init__(self, name: str, images: pa.ChunkedArray):
        self.images = images
        self.source = f"bytes:{name}"

    def encoded(self, path: str) -> bytes:
        """The bytes at a position."""
        image = self.images[int(path)]
        if not image.is_valid:
            return b""
        _refuse_large(image.as_buffer().size, path)
        return image.as_py()


def read_file(file: Path, name: str) -> bytes:
    """The bytes of an image file, never more than an image may have; `name` is what errors call it."""
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):  # reading a pipe would wait forever
            raise BadImageError(f"{name}: cannot be read (a folder, a pipe or a device)")
        with file.open("rb") as opened:
            return read_image(opened, status.st_size, name)
    except OSError as error:
        kind = BadKind.MISSING if isinstance(error, FileNotFoundError) else BadKind.UNREADABLE
        raise BadImageError(f"{name}: cannot be read ({error.strerror or error})", kind) from error


def read_image(file: Any, size: int, name: str) -> bytes:
    """The bytes of an image of which `size` is claimed; what cannot be an image is refused before it is in memory."""
    _refuse_large(size, name)
    start = file.read(min(size, READ_BYTES))
    if size > LARGE_FILE_BYTES and not is_image_start(start):
        raise BadImageError(f"{name}: {NOT_AN_IMAGE}", BadKind.NOT_AN_IMAGE)
    return read_rest(file, name, start)


def read_rest(file: Any, name: str, start: bytes = b"") -> bytes:
    """`start` and what follows it in a file, piece by piece; refused as soon as it is more than an image may have."""
    found = io.BytesIO()
    found.write(start)
    while piece := file.read(READ_BYTES):
        _refuse_large(found.tell() + len(piece), name)
        found.write(piece)
    return found.getvalue()


def _refuse_large(n_bytes: int, name: str) -> None:
    if n_bytes > MAX_FILE_BYTES:
        raise BadImageError(
            f"{name}: too large, {n_bytes:,} bytes", BadKind.TOO_LARGE, expected=f"at most {MAX_FILE_BYTES:,}"
        )


def open_zip(archive: Path) -> zipfile.ZipFile:
    """Open a zip, or say what is wrong with it."""
    try:
        return zipfile.ZipFile(archive)
    except FileNotFoundError as error:
        raise MissingDataError(f"no such file: {archive}") from error
    except Exception as error:  # zipfile lets out whatever a damaged byte happens to cause
        raise DataError(f"{archive} cannot be opened: {error}", expected="a zip file") from error
