"""Headers: what agrees, what differs, and which features may be compared."""

from __future__ import annotations

import json

import pytest

from justright.features.store_header import Header, StoreMismatchError


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
