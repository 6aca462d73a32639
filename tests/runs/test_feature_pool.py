from __future__ import annotations

import numpy as np
import pytest

from justright.data.pool import Origin
from justright.features.store import StoreMismatchError
from justright.features.table import FeatureTable
from justright.runs.selection import merge_tables
from justright.utils.errors import DataError


def table(labels, names, dataset, seed=0, dim=3):
    x = np.random.default_rng(seed).normal(size=(len(labels), dim)).astype(np.float32)
    columns = {"label": np.array(labels), "class_name": [names[label] for label in labels]}
    return FeatureTable.of(x, **columns, dataset=dataset if isinstance(dataset, list) else [dataset] * len(labels))


def test_labels_follow_the_tables_then_their_own_labels(tmp_path):
    birds = table([7, 2, 7], {7: "wren", 2: "gull"}, "birds").write(tmp_path / "birds")
    pets = table([1, 0], {1: "dog", 0: None}, "pets", seed=1)
    pool = merge_tables([birds, pets])
    assert pool.class_names == ["birds/gull", "birds/wren", "pets/0", "pets/dog"]
    assert pool.labels.tolist() == [1, 0, 1, 3, 2]
    assert pool.origins[1] == Origin("birds", 7, "wren")
    assert pool.counts.tolist() == [1, 2, 1, 1]
    shards = list(pool)
    assert np.array_equal(np.concatenate([features for features, _ in shards]), pool.features)
    assert np.array_equal(np.concatenate([labels for _, labels in shards]), pool.labels)
    assert np.array_equal(pool.take(np.array([1, 2, 4])), pool.features[[1, 2, 4]])
    assert pool.index()["class_name"].to_pylist()[3] == "pets/dog"


def test_one_table_may_hold_several_data_sets_with_the_same_labels():
    both = table([0, 0, 1], {0: "a", 1: "b"}, ["x", "y", "x"])
    pool = merge_tables([both])
    assert pool.class_names == ["x/a", "x/b", "y/a"]
    assert pool.labels.tolist() == [0, 2, 1]


def test_invalid_pools_raise():
    birds = table([0, 1], {0: "a", 1: "b"}, "birds")
    with pytest.raises(DataError, match="called 'birds'"):
        merge_tables([birds, birds])
    with pytest.raises(DataError, match="have no label"):
        merge_tables([birds.without_labels()])
    with pytest.raises(DataError, match="empty"):
        merge_tables([])
    patches = FeatureTable.of(np.ones((2, 4, 3), np.float32), label=np.array([0, 1]))
    with pytest.raises(DataError, match="4 x 3 numbers per image"):
        merge_tables([patches])
    other = table([0, 1], {0: "a", 1: "b"}, "pets")
    vars(other.header)["backbone"] = {"name": "another"}
    with pytest.raises(StoreMismatchError, match=r"backbone\.name"):
        merge_tables([birds, other])


def test_pooled_class_names_get_no_second_prefix():
    assert merge_tables([table([0], {0: "birds/wren"}, "birds")]).class_names == ["birds/wren"]
