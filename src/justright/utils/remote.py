"""Files at an address that fsspec supports, such as s3://bucket/birds.features."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from justright.utils.errors import DataError


@dataclass(frozen=True)
class RemotePath:
    """A file or folder by its address, with the methods of `Path` that stores use."""

    address: str

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(f"{self.address.rstrip('/')}/{name}")

    def __str__(self) -> str:
        return self.address

    def is_file(self) -> bool:
        """Whether there is such a file."""
        with self._files() as (files, path):
            try:
                return bool(files.info(path)["type"] == "file")  # `isfile` would be False for any error
            except FileNotFoundError:
                return False

    exists = is_file  # a store of objects has no folders

    def size(self) -> int:
        """Bytes of the file."""
        with self._files() as (files, path):
            return int(files.size(path))

    def open(self, mode: str = "rb") -> Any:
        """Open the file, to read it piece by piece."""
        with self._files() as (files, path):
            return files.open(path, mode)

    def read_bytes(self, start: int | None = None, stop: int | None = None) -> bytes:
        """The file, or some of its bytes."""
        with self._files() as (files, path):
            return bytes(files.cat_file(path, start=start, end=stop))

    def read_text(self, encoding: str = "utf-8") -> str:
        """The file as text."""
        return self.read_bytes().decode(encoding)

    def put(self, file: Path) -> None:
        """Copy a file of this machine to this address."""
        with self._files() as (files, path):
            files.makedirs(files._parent(path), exist_ok=True)
            files.put_file(file, path)

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete the file."""
        if not missing_ok or self.is_file():
            with self._files() as (files, path):
                files.rm_file(path)

    @contextmanager
    def _files(self) -> Iterator[tuple[Any, str]]:
        """The file system and the path in it; any error in the block becomes a DataError."""
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]

        try:
            yield url_to_fs(self.address)
        except ImportError as error:  # it names the package: "Install s3fs to access S3"
            raise DataError(
                f"{self.address}: {error}", expected="the package that knows this kind of address", advice="install it"
            ) from error
        except Exception as error:  # each kind of store has errors of its own
            raise DataError(
                f"{self.address}: {type(error).__name__}: {error}",
                expected="a place that can be reached, with the rights to read and write there",
                advice="the documentation of fsspec describes addresses and keys",
            ) from error


Place: TypeAlias = Path | RemotePath  # where a store is


def place_of(address: str | Place) -> Place:
    """A path of this machine, also as file://, or an address of fsspec."""
    if not isinstance(address, str):
        return address
    if address.startswith("file://"):
        return Path(address.removeprefix("file://"))
    return RemotePath(address) if "://" in address else Path(address)
