"""The store: damaged files are detected."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from justright.features.store import FILES, DamagedStoreError
from justright.features.table import FeatureTable
from justright.utils.errors import MissingDataError


def test_array_is_an_ordinary_npy_file(table, tmp_path):
    table.write(tmp_path / "t")
    np.testing.assert_array_equal(np.load(tmp_path / "t" / "features.npy", allow_pickle=False), table.features)


@pytest.mark.parametrize("name", ["features.npy", "index.parquet"])
def test_missing_file_raises_with_its_name(table, tmp_path, name):
    table.write(tmp_path / "t")
    (tmp_path / "t" / name).unlink()
    with pytest.raises(DamagedStoreError, match=f"{name} is missing"):
        FeatureTable.open(tmp_path / "t")


def test_truncated_array_raises_with_its_name(table, tmp_path):
    table.write(tmp_path / "t")
    file = tmp_path / "t" / "features.npy"
    file.write_bytes(file.read_bytes()[:-7])
    with pytest.raises(DamagedStoreError, match=r"features\.npy does not match"):
        FeatureTable.open(tmp_path / "t")


def test_changed_byte_raises(table, tmp_path):
    table.write(tmp_path / "t")
    file = tmp_path / "t" / "features.npy"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(DamagedStoreError, match=r"features\.npy does not match its checksum"):
        FeatureTable.open(tmp_path / "t")
    assert len(FeatureTable.open(tmp_path / "t", verify=False)) == 10


def test_damaged_or_other_header_raises(table, tmp_path):
    table.write(tmp_path / "t")
    header = tmp_path / "t" / "store.json"
    good = header.read_text()
    header.write_text(good[:40])
    with pytest.raises(DamagedStoreError, match=r"store\.json cannot be read"):
        FeatureTable.open(tmp_path / "t")
    header.write_text(good.replace('"format": 2', '"format": 99'))
    with pytest.raises(DamagedStoreError, match="another version"):
        FeatureTable.open(tmp_path / "t")
    with pytest.raises(MissingDataError, match="no feature store"):
        FeatureTable.open(tmp_path / "nothing")


@pytest.mark.parametrize("damage", [None, "{", '[{"kind": "unknown"}]'])
def test_damaged_quarantine_raises_with_its_name(table, tmp_path, damage):
    file = table.write(tmp_path / "t").path / "quarantine.json"
    file.unlink()
    if damage is not None:
        file.write_text(damage)
    with pytest.raises(DamagedStoreError, match=r"quarantine\.json"):
        _ = FeatureTable.open(tmp_path / "t").quarantined


def equal(one: FeatureTable, other: FeatureTable) -> bool:
    return (
        one.index.equals(other.index)
        and one.header.differences(other.header) == []
        and np.array_equal(one.features, other.features)
        and one.quarantined == other.quarantined
    )


@pytest.mark.parametrize("name", FILES)
def test_flipped_bit_raises_with_the_name_of_the_file(table, tmp_path, name):
    kept = table.write(tmp_path / "t")
    before = FeatureTable(np.array(kept.features), kept.index, kept.header)
    file = tmp_path / "t" / name
    good = file.read_bytes()
    for place in range(0, len(good), max(1, len(good) // 200)):
        file.write_bytes(good[:place] + bytes([good[place] ^ (1 << place % 8)]) + good[place + 1 :])
        result = opened(tmp_path / "t")
        if isinstance(result, str):
            assert name in result
        else:
            assert equal(result, before), place
            assert name == "store.json"  # a space in its place may become another one that JSON takes


def opened(path) -> FeatureTable | str:
    """The table, or the error message."""
    try:
        table = FeatureTable.open(path)
        _ = table.quarantined
    except DamagedStoreError as error:
        return str(error)
    return table


@pytest.mark.parametrize("names", [names for n in (1, 2, 3) for names in combinations(FILES, n)])
def test_files_of_two_stores_cannot_be_mixed(table, tmp_path, names):
    rng = np.random.default_rng(3)
    other = FeatureTable.of(
        rng.normal(size=table.features.shape).astype(np.float32), label=table.labels, path=["x"] * 10
    )
    table.write(tmp_path / "t")
    other.write(tmp_path / "other")
    for name in names:
        (tmp_path / "t" / name).write_bytes((tmp_path / "other" / name).read_bytes())
    if names == ("quarantine.json",):  # both are empty
        assert FeatureTable.open(tmp_path / "t").quarantined == []
        return
    if set(FILES) - set(names) == {"quarantine.json"}:
        assert equal(FeatureTable.open(tmp_path / "t"), FeatureTable.open(tmp_path / "other"))
        return
    with pytest.raises(DamagedStoreError, match=r"json|npy|parquet"):
        _ = FeatureTable.open(tmp_path / "t").quarantined
