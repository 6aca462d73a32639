"""The store: whole or refused, read without torch."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from justright.errors import DataError, MissingDataError
from justright.features.table import (
    DamagedStoreError,
    FeatureTable,
    Header,
    StoreMismatchError,
    StoreWriter,
    begin_store,
)


@pytest.fixture
def table():
    features = np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)
    label = [0, 0, 1, 1, 2, 2, -1, -1, 0, 1]
    names = [{0: "ant", 1: "bee", 2: "cat"}.get(each) for each in label]
    return FeatureTable.of(features, label=label, class_name=names, path=[f"{i}.png" for i in range(10)])


def test_what_is_written_is_read(table, tmp_path):
    read = table.write(tmp_path / "t")
    assert isinstance(read.features, np.memmap)
    np.testing.assert_array_equal(read.features, table.features)
    np.testing.assert_array_equal(read.labels, table.labels)
    assert (read.ids, read.paths, read.datasets) == (table.ids, table.paths, table.datasets)
    assert read.classes == {0: "ant", 1: "bee", 2: "cat"}
    assert read.labels.dtype == np.int64
    assert len(read) == 10
    assert repr(read) == "FeatureTable(10 x 4 float32, 3 classes)"


def test_the_array_is_an_ordinary_npy_file(table, tmp_path):
    table.write(tmp_path / "t")
    np.testing.assert_array_equal(np.load(tmp_path / "t" / "features.npy", allow_pickle=False), table.features)


def test_half_precision_stays_half(tmp_path):
    read = FeatureTable.of(np.ones((3, 2), np.float16)).write(tmp_path / "t")
    assert read.features.dtype == np.float16


def test_patch_tokens_keep_their_axes(tmp_path):
    tokens = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    read = FeatureTable.of(tokens).write(tmp_path / "t")
    np.testing.assert_array_equal(read.features, tokens)
    assert read.header.dim == 4


def test_a_table_without_rows_is_a_table(tmp_path):
    read = FeatureTable.of(np.empty((0, 5), np.float32)).write(tmp_path / "t")
    assert read.features.shape == (0, 5)
    assert list(read.shards()) == []


def test_shards_stream_all_rows_in_order(table, tmp_path):
    for each in (table, table.write(tmp_path / "t")):
        blocks = list(each.shards(n_rows=4))
        assert [len(labels) for _, labels in blocks] == [4, 4, 2]
        np.testing.assert_array_equal(np.concatenate([features for features, _ in blocks]), table.features)
        np.testing.assert_array_equal(np.concatenate([labels for _, labels in blocks]), table.labels)


def test_taken_rows_are_other_data(table, tmp_path):
    taken = table.write(tmp_path / "t").take([3, 1])
    np.testing.assert_array_equal(taken.features, table.features[[3, 1]])
    assert taken.paths == ["3.png", "1.png"]
    assert taken.header.data["images"] == 2
    np.testing.assert_array_equal(taken.write(tmp_path / "u").features, taken.features)


def test_without_labels_nothing_tells_the_class(table):
    blind = table.without_labels()
    assert set(blind.labels) == {-1}
    assert blind.classes == {}
    assert blind.index["class_name"].null_count == 10
    assert blind.ids == table.ids


def test_reading_needs_no_torch(table, tmp_path):
    table.write(tmp_path / "t")
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['timm'] = None\n"
        "from justright.features.table import FeatureTable; import justright.features.cache\n"
        f"t = FeatureTable.open({str(tmp_path / 't')!r}); print(t.features.shape, sum(len(l) for _, l in t.shards()))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "(10, 4) 10"


@pytest.mark.parametrize("name", ["features.npy", "shards.jsonl", "index.parquet"])
def test_a_missing_file_is_refused_by_name(table, tmp_path, name):
    table.write(tmp_path / "t")
    (tmp_path / "t" / name).unlink()
    with pytest.raises(DamagedStoreError, match=name):
        FeatureTable.open(tmp_path / "t")


def test_a_truncated_array_is_refused_by_name(table, tmp_path):
    table.write(tmp_path / "t")
    file = tmp_path / "t" / "features.npy"
    file.write_bytes(file.read_bytes()[:-7])
    with pytest.raises(DamagedStoreError, match=r"features\.npy holds 9\.56"):
        FeatureTable.open(tmp_path / "t")


def test_a_changed_byte_is_refused_by_shard(table, tmp_path):
    table.write(tmp_path / "t")
    file = tmp_path / "t" / "features.npy"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(DamagedStoreError, match="shard 0 has another checksum"):
        FeatureTable.open(tmp_path / "t")
    assert len(FeatureTable.open(tmp_path / "t", verify=False)) == 10


def test_a_broken_or_foreign_header_is_refused(table, tmp_path):
    table.write(tmp_path / "t")
    header = tmp_path / "t" / "store.json"
    good = header.read_text()
    header.write_text(good[:40])
    with pytest.raises(DamagedStoreError, match=r"store\.json cannot be read"):
        FeatureTable.open(tmp_path / "t")
    header.write_text(good.replace('"format": 1', '"format": 99'))
    with pytest.raises(DamagedStoreError, match="another version"):
        FeatureTable.open(tmp_path / "t")
    with pytest.raises(MissingDataError, match="no feature store"):
        FeatureTable.open(tmp_path / "nothing")


def test_an_unfinished_store_is_refused_and_says_how_far_it_is(table, tmp_path):
    begin_store(tmp_path / "t", table.header)
    with StoreWriter(tmp_path / "t", table.header) as writer:
        writer.add(table.features[:6], {})
    with pytest.raises(DamagedStoreError, match="not finished: 6 features"):
        FeatureTable.open(tmp_path / "t")


@pytest.mark.parametrize("cut", [1, 40, 300])
def test_a_writer_goes_on_behind_the_last_whole_shard(table, tmp_path, cut):
    place = tmp_path / "t"
    begin_store(place, table.header)
    with StoreWriter(place, table.header) as writer:
        for start in (0, 3, 6):
            writer.add(table.features[start : start + 3], {})
    name = "shards.jsonl" if cut < 40 else "features.npy"
    data = (place / name).read_bytes()
    (place / name).write_bytes(data[:-cut])
    assert not begin_store(place, table.header)
    with StoreWriter(place, table.header) as writer:
        n_kept = {1: 6, 40: 6, 300: 0}[cut]
        assert writer.n_rows == n_kept
        writer.add(table.features[n_kept:], {})
        writer.finish(table.index, [])
    np.testing.assert_array_equal(FeatureTable.open(place).features, table.features)


def test_two_writers_of_one_store_are_refused(table, tmp_path):
    begin_store(tmp_path / "t", table.header)
    with StoreWriter(tmp_path / "t", table.header), pytest.raises(DataError, match="another process"):
        StoreWriter(tmp_path / "t", table.header)


def test_another_header_is_refused_with_what_differs(table, tmp_path):
    table.write(tmp_path / "t")
    other = Header([4], "float32", backbone={"name": "vit"}, data=table.header.data)
    with pytest.raises(StoreMismatchError, match=r"backbone\.name: not given, vit"):
        begin_store(tmp_path / "t", other)
    assert FeatureTable.open(tmp_path / "t").ids == table.ids
    assert not begin_store(tmp_path / "t", other, overwrite=True)


def test_equal_headers_agree_across_json():
    header = Header((4,), "float32", transform={"mean": (0.5, 0.5)})
    assert (
        Header(
            **json.loads(json.dumps({"shape": [4], "dtype": "float32", "transform": {"mean": [0.5, 0.5]}}))
        ).differences(header)
        == []
    )


def test_features_of_two_backbones_are_not_compared():
    one, other = (Header([4], "float32", backbone={"name": name}) for name in ("a", "b"))
    with pytest.raises(StoreMismatchError, match=r"backbone\.name: a, b"):
        one.require_comparable(other)
    one.require_comparable(Header([4], "float16", backbone={"name": "a"}, data={"images": 3}))


def test_a_directory_of_something_else_is_never_touched(table, tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "thesis.tex").write_text("all my work")
    for overwrite in (False, True):
        with pytest.raises(DataError, match="no feature store"):
            table.write(tmp_path / "t", overwrite=overwrite)
    assert (tmp_path / "t" / "thesis.tex").read_text() == "all my work"


def test_rows_and_index_must_agree(table):
    with pytest.raises(DataError, match="9 features and 10 rows"):
        FeatureTable(table.features[:9], table.index, table.header)
