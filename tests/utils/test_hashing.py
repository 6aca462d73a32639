from __future__ import annotations

import hashlib
import json

import numpy as np
import pyarrow as pa
import pytest

from justright.utils.hashing import (
    SIGNATURE,
    hash_bytes,
    hash_file,
    hash_list,
    hash_pieces,
    hash_value,
    in_blocks,
    signed,
    verified,
)


def test_bytes_and_files_of_equal_content_hash_alike(tmp_path):
    data = bytes(range(256)) * 5000
    (tmp_path / "file").write_bytes(data)
    assert hash_file(tmp_path / "file") == hash_bytes(data) == hashlib.blake2b(data, digest_size=16).hexdigest()


def test_hash_of_a_value_ignores_the_order_of_keys():
    assert hash_value({"a": 1, "b": [2]}) == hash_value({"b": [2], "a": 1})
    assert hash_value({"a": 1}) != hash_value({"a": 2})


def test_hash_of_pieces_is_that_of_the_whole():
    assert hash_pieces([b"one ", memoryview(b"two"), b""]) == hash_bytes(b"one two")


def test_signature_detects_any_change():
    value = {"a": (1, 2), "b": {"c": None, "d": 0.1}, "ä": "ö"}
    plain = {"a": [1, 2], "b": {"c": None, "d": 0.1}, "ä": "ö"}
    text = json.dumps(signed(value), ensure_ascii=False)
    assert verified(json.loads(text)) == plain
    assert signed(signed(value)) == signed(value)
    for changed in (text.replace("0.1", "0.2"), text.replace(SIGNATURE, "own"), text.replace('"c"', '"e"')):
        with pytest.raises(ValueError, match="checksum does not match"):
            verified(json.loads(changed))


@pytest.mark.parametrize("sizes", [[], [0], [3], [2, 0, 5], [0, 1]])
def test_hash_of_blocks_is_that_of_the_list(sizes):
    blocks = [[f"{size} {number}" for number in range(size)] for size in sizes]
    assert hash_list(iter(blocks)) == hash_value([text for block in blocks for text in block])


def test_deeply_nested_value_is_not_verified():
    value: list = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ValueError, match="checksum"):
        verified({"a": value, SIGNATURE: "0"})


def test_arrays_and_columns_become_lists_in_blocks():
    assert list(in_blocks(np.arange(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(in_blocks(pa.chunked_array([["a"], ["b", "c"]]), 2)) == [["a", "b"], ["c"]]
    assert list(in_blocks(np.arange(0))) == []
