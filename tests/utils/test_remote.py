"""Addresses of fsspec: read and written like paths; errors name the address."""

from __future__ import annotations

import sys
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from justright.utils.errors import DataError
from justright.utils.remote import RemotePath, place_of


def test_local_paths_stay_paths_and_urls_keep_slashes():
    assert place_of("birds.features") == place_of(Path("birds.features")) == Path("birds.features")
    assert place_of("file:///data/birds") == Path("/data/birds")
    assert str(place_of("s3://bucket/birds/") / "store.json") == "s3://bucket/birds/store.json"


def test_remote_file_is_written_read_in_part_and_removed(tmp_path):
    (tmp_path / "here").write_bytes(b"0123456789")
    there = RemotePath("memory://test_remote/deep") / "there"
    assert not there.is_file()
    there.put(tmp_path / "here")
    assert there.exists()
    assert there.size() == 10
    assert there.read_bytes(2, 5) == b"234"
    assert there.read_text() == "0123456789"
    with there.open() as file:
        assert file.read(3) == b"012"
    there.unlink()
    there.unlink(missing_ok=True)
    assert not there.is_file()


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(DataError, match=r"s3://bucket/birds: .*[Ii]nstall s3fs") as error:
        RemotePath("s3://bucket/birds").is_file()
    assert error.value.advice == "install it"


@pytest.mark.parametrize("address", ["nonsense://x", "memory://not/there"])
def test_unreachable_address_is_named(address):
    with pytest.raises(DataError, match=address):
        RemotePath(address).read_bytes()


class LikeS3(MemoryFileSystem):
    """Has another order of parameters, as s3fs does, and may be unreachable."""

    protocol = "likes3"
    error: Exception | None = None

    def cat_file(self, path, version_id=None, start=None, end=None):
        assert version_id is None
        return super().cat_file(path, start, end)

    def info(self, path, **options):
        if self.error:
            raise self.error
        return super().info(path, **options)


def test_unreachable_store_raises_instead_of_looking_empty(tmp_path, monkeypatch):
    fsspec.register_implementation("likes3", LikeS3, clobber=True)
    (tmp_path / "here").write_bytes(b"0123456789")
    there = RemotePath("likes3://bucket/there")
    there.put(tmp_path / "here")
    assert there.read_bytes(2, 5) == b"234"
    for error in (PermissionError("no key"), OSError("no route to host")):
        monkeypatch.setattr(LikeS3, "error", error)
        with pytest.raises(DataError, match=f"likes3://bucket/there: .*{error}"):
            there.is_file()
