"""Files at an address that fsspec supports, such as s3://bucket/birds.features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from justright.utils.errors import DataError

T = TypeVar("T")


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

        def is_file_in(files: Any, path: str) -> bool:
            try:
                return bool(files.info(path)["type"] == "file")  # `isfile` would be False for any error
            except FileNotFoundError:
                return False

        return self._call(is_file_in)

    exists = is_file  # a store of objects has no folders

    def size(self) -> int:
        """Bytes of the file."""
        return self._call(lambda files, path: int(files.size(path)))

    def open(self, mode: str = "rb") -> Any:
        """Open the file, to read it piece by piece."""
        return self._call(lambda files, path: files.open(path, mode))

    def read_bytes(self, start: int | None = None, stop: int | None = None) -> bytes:
        """The file, or some of its bytes."""
        return self._call(lambda files, path: files.cat_file(path, start=start, end=stop))

    def read_text(self, encoding: str = "utf-8") -> str:
        """The file as text."""
        return self.read_bytes().decode(encoding)

    def put(self, file: Path) -> None:
        """Copy a file of this machine to this address."""

        def copy(files: Any, path: str) -> None:
            files.makedirs(files._parent(path), exist_ok=True)
            files.put_file(file, path)

        self._call(copy)

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete the file."""
        if not missing_ok or self.is_file():
            self._call(lambda files, path: files.rm_file(path))

    def _call(self, function: Callable[[Any, str], T]) -> T:
        """Call a function with the file system and the path in it; any error becomes a DataError."""
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]

        try:
            return function(*url_to_fs(self.address))
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
