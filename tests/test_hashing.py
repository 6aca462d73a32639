from __future__ import annotations

import hashlib

from justright.hashing import hash_bytes, hash_file, hash_pieces, hash_value


def test_bytes_and_files_of_the_same_content_have_the_same_fingerprint(tmp_path):
    data = bytes(range(256)) * 5000
    (tmp_path / "file").write_bytes(data)
    assert hash_file(tmp_path / "file") == hash_bytes(data) == hashlib.blake2b(data, digest_size=16).hexdigest()


def test_values_differ_by_content_and_not_by_the_order_of_keys():
    assert hash_value({"a": 1, "b": [2]}) == hash_value({"b": [2], "a": 1})
    assert hash_value({"a": 1}) != hash_value({"a": 2})


def test_where_bytes_are_cut_into_pieces_does_not_matter():
    assert hash_pieces([b"one ", memoryview(b"two"), b""]) == hash_bytes(b"one two")
