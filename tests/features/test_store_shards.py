"""Records of shards: a line fits one place in one store."""

from __future__ import annotations

from dataclasses import replace

from justright.features.store import Header, Shard, read_shards, shard_line

HEADER = Header([4], "float32", data={"content": "abc"})
SHARDS = [Shard(3, 17, {}), Shard(2, 5, {4: ("truncated", "torn")}), Shard(3, 9, {})]


def lines(header=HEADER):
    return [shard_line(shard, number, header) for number, shard in enumerate(SHARDS)]


def read(tmp_path, data, header=HEADER):
    (tmp_path / "shards.jsonl").write_bytes(data)
    return read_shards(tmp_path / "shards.jsonl", header)


def test_what_was_written_is_read(tmp_path):
    assert read(tmp_path, b"".join(lines())) == SHARDS


def test_a_line_that_a_kill_cut_is_left_out(tmp_path):
    assert read(tmp_path, b"".join(lines())[:-1]) == SHARDS[:2]


def test_lines_in_another_order_or_of_another_store_are_not_taken(tmp_path):
    first, second, third = lines()
    assert read(tmp_path, second + first + third) == []
    assert read(tmp_path, first + third + second) == SHARDS[:1]
    assert read(tmp_path, b"".join(lines(replace(HEADER, data={"content": "other"})))) == []


def test_no_flipped_bit_changes_a_record(tmp_path):
    data = b"".join(lines())
    for place in range(len(data)):
        found = read(tmp_path, data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert found == SHARDS[: len(found)]
