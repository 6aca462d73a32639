from __future__ import annotations

import pickle

import numpy as np
import pytest

from justright.features.table import FeatureTable
from justright.utils.file_rows import FileRows, row_shards


@pytest.fixture
def features():
    return np.random.default_rng(0).normal(size=(25, 6)).astype(np.float16)


def test_shards_of_a_store_read_as_its_features(features, tmp_path):
    store = FeatureTable.of(features).write(tmp_path / "store")
    shards = row_shards(store.features, 10)
    assert all(isinstance(shard, FileRows) for shard in shards)
    assert [shard.shape for shard in shards] == [(10, 6), (10, 6), (5, 6)]
    assert [len(shard) for shard in shards] == [10, 10, 5]
    assert np.array_equal(np.concatenate([np.asarray(shard) for shard in shards]), features)
    assert np.asarray(shards[0]).dtype == np.float16


def test_file_rows_are_read_without_a_copy_and_pickle_small(tmp_path):
    np.save(tmp_path / "large.npy", np.ones((10_000, 8)))
    (shard,) = row_shards(np.load(tmp_path / "large.npy", mmap_mode="r"))
    assert not np.asarray(shard).flags.owndata
    assert len(pickle.dumps(shard)) < 1000
    assert np.asarray(pickle.loads(pickle.dumps(shard))).sum() == 80_000


def test_numpy_converts_file_rows_to_another_type_or_copies(features, tmp_path):
    np.save(tmp_path / "features.npy", features)
    (shard,) = row_shards(np.load(tmp_path / "features.npy", mmap_mode="r"))
    assert np.asarray(shard, dtype=np.float64).dtype == np.float64
    own = np.array(shard)
    own[0] = 0  # the file is read only, a copy is not
    assert np.array_equal(np.asarray(shard), features)


def test_arrays_in_memory_are_sliced(features, tmp_path):
    np.save(tmp_path / "features.npy", features)
    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")
    for array in (features, mapped[3:], mapped[:, ::2]):
        shards = row_shards(array, 10)
        assert not any(isinstance(shard, FileRows) for shard in shards)
        assert np.array_equal(np.concatenate(shards), array)
    assert row_shards(features[:0]) == []
