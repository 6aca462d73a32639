"""Writing a store: other files are never replaced; a remote store is complete or absent."""

from __future__ import annotations

import os

import fsspec
import numpy as np
import pytest
from tests.features.tiny_extraction import run, tiny
from tests.lost_workers import FAR_ENGINES

from justright.features.store import (
    FILES,
    HEADER,
    DamagedStoreError,
    Header,
    StoreMismatchError,
    begin_store,
    locked_store,
)
from justright.features.table import FeatureTable, labeled_and_target
from justright.selection import BetaSelector
from justright.utils.errors import DataError
from justright.utils.file_rows import FileRows, row_shards
from justright.utils.parallel import ENGINES
from justright.utils.remote import RemotePath


def test_unfinished_store_raises(table, tmp_path):
    begin_store(tmp_path / "t", table.header)
    with pytest.raises(DamagedStoreError, match="is not finished"):
        FeatureTable.open(tmp_path / "t")


def test_second_writer_of_a_store_raises(table, tmp_path):
    begin_store(tmp_path / "t", table.header)
    with (
        locked_store(tmp_path / "t"),
        pytest.raises(DataError, match=rf"written by process {os.getpid()}"),
        locked_store(tmp_path / "t"),
    ):
        pass


def test_other_header_raises_with_the_difference(table, tmp_path):
    table.write(tmp_path / "t")
    other = Header([4], "float32", backbone={"name": "vit"}, data=table.header.data)
    with pytest.raises(StoreMismatchError, match=r"backbone\.name: not given, vit"):
        begin_store(tmp_path / "t", other)
    assert FeatureTable.open(tmp_path / "t").ids == table.ids
    assert not begin_store(tmp_path / "t", other, overwrite=True)


def test_other_folder_is_never_touched(table, tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "thesis.tex").write_text("all my work")
    for overwrite in (False, True):
        with pytest.raises(DataError, match="no feature store"):
            table.write(tmp_path / "t", overwrite=overwrite)
    assert (tmp_path / "t" / "thesis.tex").read_text() == "all my work"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def place(tmp_path, home):
    return RemotePath(f"memory://{tmp_path.name}/store")


def test_remote_store_equals_local_without_leftovers(drawn, tmp_path, place, home):
    here, there = run(drawn, tmp_path / "here"), run(drawn, str(place))
    differing = {"index.parquet", HEADER}  # sources are relative to the store, and their hash
    for name in set(FILES) - differing:
        assert (place / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
    assert isinstance(there.features, FileRows)
    assert there.ids == here.ids
    assert there.quarantined == []
    assert list((home / "staging").iterdir()) == []
    backbone = tiny()
    run(drawn, place, backbone)
    assert backbone.n_batches == 0


def test_remote_features_are_read_like_an_array(table, place):
    there = table.write(place)
    rows = np.array([7, 0, 0, 3])
    for key in (rows, slice(2, 5), slice(None, None, 3), np.arange(10) % 2 == 0, slice(0, 0)):
        np.testing.assert_array_equal(there.features[key], table.features[key])
    np.testing.assert_array_equal(np.asarray(there.features), table.features)
    np.testing.assert_array_equal(there.from_row(4).features, table.features[4:])
    np.testing.assert_array_equal(there.take(rows).features, table.features[rows])
    assert labeled_and_target(there, there)[0].shape == (20, 4)


def test_remote_store_is_absent_until_its_header_is_copied(drawn, tmp_path, place, monkeypatch):
    put = RemotePath.put

    def interrupted(self, file):
        if file.name == HEADER:
            raise KeyboardInterrupt
        put(self, file)

    monkeypatch.setattr(RemotePath, "put", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(drawn, place)
    with pytest.raises(DataError, match="no feature store"):
        FeatureTable.open(place)
    monkeypatch.undo()
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    backbone = tiny()
    assert len(run(drawn, place, backbone)) == len(drawn)
    assert backbone.n_batches == 0


@pytest.mark.parametrize("name", FILES)
def test_damaged_remote_file_raises_with_its_name(table, place, name):
    table.write(place)
    files, path = fsspec.core.url_to_fs(str(place / name))
    data = bytearray(files.cat_file(path))
    data[len(data) // 2] ^= 1
    files.pipe_file(path, bytes(data))
    with pytest.raises(DamagedStoreError, match=name):
        _ = FeatureTable.open(place).quarantined


def test_remote_store_is_replaced_only_with_overwrite(table, place):
    table.write(place)
    other = table.take([0, 1])
    with pytest.raises(StoreMismatchError):
        other.write(place)
    assert len(FeatureTable.open(place)) == 10
    assert len(other.write(place, overwrite=True)) == 2


def test_leftovers_of_another_extraction_are_ignored(table, place):
    assert not begin_store(place, table.take([0]).header)
    assert not begin_store(place, table.header)
    assert len(table.write(place)) == 10


@pytest.mark.parametrize("name", FAR_ENGINES)
def test_workers_read_a_remote_store_themselves(tmp_path, home, name):
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 4
    pool, target = (1 + rng.normal(size=(60, 8)).astype(np.float32) for _ in "ab")
    address = f"local://{tmp_path}/there"  # a file system that other processes see too
    stores = (FeatureTable.of(pool, label=labels).write(f"{address}/p"), FeatureTable.of(target).write(f"{address}/t"))
    shards = [row_shards(store.features, 13) for store in stores]
    assert isinstance(shards[0][0], FileRows)
    labeled = list(zip(shards[0], row_shards(labels, 13), strict=True))
    with ENGINES[name](1) as engine:
        there = BetaSelector(domain="affine").fit_stream(labeled, shards[1], engine=engine).class_weight_
    cut = list(zip(row_shards(pool, 13), row_shards(labels, 13), strict=True))
    here = BetaSelector(domain="affine").fit_stream(cut, row_shards(target, 13)).class_weight_
    assert there.tobytes() == here.tobytes()


def test_finished_store_is_flushed_to_disk(tmp_path, flushed):
    FeatureTable.of(np.ones((3, 2), np.float32)).write(tmp_path / "store")
    names = [name.rpartition("/")[2] for name in flushed]
    assert any(name.startswith(".features.npy") for name in names)
    assert names[-1].startswith(".store.json"), "the header last"
