"""Tables: written and read back, in order, without torch."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from justright.features.store import StoreMismatchError
from justright.features.table import FeatureTable
from justright.utils.errors import DataError


def test_written_table_is_read_back(table, tmp_path):
    read = table.write(tmp_path / "t")
    assert isinstance(read.features, np.memmap)
    np.testing.assert_array_equal(read.features, table.features)
    np.testing.assert_array_equal(read.labels, table.labels)
    assert (read.ids, read.paths, read.datasets) == (table.ids, table.paths, table.datasets)
    assert read.classes == {0: "ant", 1: "bee", 2: "cat"}
    assert read.labels.dtype == np.int64
    assert len(read) == 10
    assert repr(read) == "FeatureTable(10 x 4 float32, 3 classes)"


def test_half_precision_stays_half(tmp_path):
    read = FeatureTable.of(np.ones((3, 2), np.float16)).write(tmp_path / "t")
    assert read.features.dtype == np.float16


def test_patch_tokens_keep_their_axes(tmp_path):
    tokens = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    read = FeatureTable.of(tokens).write(tmp_path / "t")
    np.testing.assert_array_equal(read.features, tokens)
    assert list(read.header.shape) == [3, 4]


def test_empty_table_is_read_back(tmp_path):
    read = FeatureTable.of(np.empty((0, 5), np.float32)).write(tmp_path / "t")
    assert read.features.shape == (0, 5)
    assert len(read.from_row(0)) == 0


def test_later_rows_are_mapped_and_have_their_own_fingerprint(table, tmp_path):
    written = table.write(tmp_path / "t")
    for each in (table, written):
        rest = each.from_row(4)
        np.testing.assert_array_equal(rest.features, table.features[4:])
        np.testing.assert_array_equal(rest.labels, table.labels[4:])
        assert rest.paths == table.paths[4:]
        assert rest.header.data == table.take(range(4, 10)).header.data
    assert isinstance(written.from_row(4).features, np.memmap)


def test_taken_rows_have_their_own_fingerprint(table, tmp_path):
    taken = table.write(tmp_path / "t").take([3, 1])
    np.testing.assert_array_equal(taken.features, table.features[[3, 1]])
    assert taken.paths == ["3.png", "1.png"]
    assert taken.header.data["images"] == 2
    np.testing.assert_array_equal(taken.write(tmp_path / "u").features, taken.features)


def test_without_labels_no_column_reveals_the_class(table):
    unlabeled = table.without_labels()
    assert set(unlabeled.labels) == {-1}
    assert unlabeled.classes == {}
    assert unlabeled.index["class_name"].null_count == 10
    assert unlabeled.ids == table.ids


def test_reading_needs_no_torch(table, tmp_path):
    table.write(tmp_path / "t")
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['timm'] = None\n"
        "from justright.features.table import FeatureTable; import justright.features.cache\n"
        f"t = FeatureTable.open({str(tmp_path / 't')!r}); print(t.features.shape, len(t.from_row(3)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "(10, 4) 7"


def test_rows_and_index_must_agree(table):
    with pytest.raises(DataError, match="9 features and 10 rows"):
        FeatureTable(table.features[:9], table.index, table.header)


def test_changed_features_with_equal_ids_are_detected(tmp_path):
    first, second = (FeatureTable.of(np.full((3, 2), number, np.float32)) for number in (1, 2))
    first.write(tmp_path / "t")
    with pytest.raises(StoreMismatchError, match="other features under the same ids"):
        second.write(tmp_path / "t")
    np.testing.assert_array_equal(first.write(tmp_path / "t").features, first.features)
    np.testing.assert_array_equal(second.write(tmp_path / "t", overwrite=True).features, second.features)
