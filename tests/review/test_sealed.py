from __future__ import annotations

import pytest

from justright.review.log import checked_value, read_count, with_checksum, write_count


@pytest.mark.parametrize("value", [{"a": 1}, {"name": 'Größe "x" \n'}, {"a": {"crc": "00000000"}}])
def test_checksummed_line_round_trips(value):
    line = with_checksum(value)
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    assert checked_value(line[:-1]) == value


def test_any_changed_byte_is_detected():
    line = with_checksum({"seq": 12, "name": "gull"})[:-1]
    for place in range(len(line)):
        for bit in range(8):
            assert checked_value(line[:place] + bytes([line[place] ^ 1 << bit]) + line[place + 1 :]) is None
        assert checked_value(line[:place]) is None


def test_saved_count_may_be_missing_or_damaged(tmp_path, caplog):
    path = tmp_path / "saved.json"
    assert read_count(path) is None
    assert not caplog.text
    for n in (0, 7, 123_456, 3):
        write_count(path, n)
        assert read_count(path) == n
    assert [each.name for each in tmp_path.iterdir()] == ["saved.json"]
    path.write_bytes(path.read_bytes().replace(b"3", b"4", 1))
    assert read_count(path) is None
    assert "damaged" in caplog.text


def test_unwritable_count_warns(tmp_path, caplog):
    (tmp_path / "no folder").write_text("a file")
    write_count(tmp_path / "no folder" / "saved.json", 1)
    assert "could not be written" in caplog.text
