"""Headers: differences, and which features may be compared."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from justright.features.store import Header, StoreMismatchError, data_fingerprint


def test_equal_headers_agree_after_json():
    header = Header((4,), "float32", transform={"mean": (0.5, 0.5)})
    assert (
        Header(
            **json.loads(json.dumps({"shape": [4], "dtype": "float32", "transform": {"mean": [0.5, 0.5]}}))
        ).differences(header)
        == []
    )


def test_features_of_two_backbones_are_not_comparable():
    one, other = (Header([4], "float32", backbone={"name": name}) for name in ("a", "b"))
    with pytest.raises(StoreMismatchError, match=r"backbone\.name: a, b"):
        one.require_comparable(other)
    one.require_comparable(Header([4], "float16", backbone={"name": "a"}, data={"images": 3}))


def test_given_ids_are_part_of_the_data_fingerprint():
    table = pa.table({"id": pa.array([None, "b"]), "path": ["x", "y"]})
    plain = data_fingerprint(["a", "b"], table)
    assert plain == data_fingerprint(["a", "b"], table.drop_columns("id"))
    given = data_fingerprint(["a", "b"], table.set_column(0, "id", pa.array(["0", "1"])))
    assert given["content"] == plain["content"]
    assert given["ids"] != data_fingerprint(["a", "b"], table.set_column(0, "id", pa.array(["1", "0"])))["ids"]
    assert data_fingerprint(["a", "c"], table.set_column(0, "id", pa.array(["0", "1"])))["content"] != plain["content"]
