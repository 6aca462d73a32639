"""The store: whole or refused."""

from __future__ import annotations

import numpy as np
import pytest

from justright.errors import MissingDataError
from justright.features.store import DamagedStoreError
from justright.features.table import FeatureTable


def test_the_array_is_an_ordinary_npy_file(table, tmp_path):
    table.write(tmp_path / "t")
    np.testing.assert_array_equal(np.load(tmp_path / "t" / "features.npy", allow_pickle=False), table.features)


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


@pytest.mark.parametrize("damage", [None, "{", '[{"kind": "eaten by a dog"}]'])
def test_a_missing_or_damaged_quarantine_is_refused_by_name(table, tmp_path, damage):
    file = table.write(tmp_path / "t").path / "quarantine.json"
    file.unlink()
    if damage is not None:
        file.write_text(damage)
    with pytest.raises(DamagedStoreError, match=r"quarantine\.json"):
        _ = FeatureTable.open(tmp_path / "t").quarantined
