"""Writing a store: it goes on where it was, and never over something else."""

from __future__ import annotations

import numpy as np
import pytest

from justright.errors import DataError
from justright.features.store import DamagedStoreError
from justright.features.store_header import Header, StoreMismatchError
from justright.features.store_writer import StoreWriter, begin_store
from justright.features.table import FeatureTable


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


def test_a_directory_of_something_else_is_never_touched(table, tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "thesis.tex").write_text("all my work")
    for overwrite in (False, True):
        with pytest.raises(DataError, match="no feature store"):
            table.write(tmp_path / "t", overwrite=overwrite)
    assert (tmp_path / "t" / "thesis.tex").read_text() == "all my work"
