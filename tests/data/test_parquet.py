"""Tables on disk that tell when they are not as they were written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from justright.data.columns import NAME
from justright.data.parquet import FINGERPRINT, read_parquet, write_parquet


def table(n: int = 40) -> pa.Table:
    names = pa.array(["wren", None, "crow", "wren"] * (n // 4))
    return pa.table(
        {
            "id": [f"id {row}" for row in range(n)],
            "name": names.cast(NAME),
            "label": pa.array(range(n), pa.int32()),
            "weight": pa.array([None, 0.5] * (n // 2), pa.float64()),
            "bytes": pa.array([b"\0x", None] * (n // 2), pa.binary()),
            "is_old": [True, False] * (n // 2),
        },
        metadata={"note": "something"},
    )


def test_written_table_is_read_without_the_fingerprint(tmp_path):
    write_parquet(table(), tmp_path / "a.parquet")
    found = read_parquet(tmp_path / "a.parquet")
    assert found.equals(table())
    assert found.schema.metadata == {b"note": b"something"}


@pytest.mark.parametrize("n", [0, 4])
def test_small_tables_and_parts_of_tables_are_read(tmp_path, n):
    for each in (table(n), table(8).slice(8 - n)):
        write_parquet(each, tmp_path / "a.parquet")
        assert read_parquet(tmp_path / "a.parquet").to_pydict() == each.to_pydict()


def test_fingerprint_ignores_chunks_and_dictionaries(tmp_path):
    whole = table()
    other = pa.concat_tables([whole.slice(20), whole.slice(0, 20)]).take(pa.array([*range(20, 40), *range(20)]))
    cut = pa.concat_tables([other.slice(0, 7), other.slice(7, 1), other.slice(8)])
    prints = set()
    for each in (whole, cut, cut.unify_dictionaries()):
        write_parquet(each, tmp_path / "a.parquet")
        prints.add(pq.read_schema(tmp_path / "a.parquet").metadata[FINGERPRINT])
        assert read_parquet(tmp_path / "a.parquet").to_pydict() == whole.to_pydict()
    assert len(prints) == 1


def test_fingerprint_covers_values_names_types_and_metadata(tmp_path):
    whole = table()
    others = [
        whole.slice(0, 39),
        whole.rename_columns(["id", "name", "label", "height", "bytes", "is_old"]),
        whole.replace_schema_metadata({"note": "nothing"}),
        whole.set_column(2, "label", whole["label"].cast(pa.int64())),
        whole.set_column(0, "id", pa.array(["id 0i", "d 1", *whole["id"].to_pylist()[2:]])),
        whole.set_column(3, "weight", pa.array([0.5, None] * 20, pa.float64())),
        whole.set_column(5, "is_old", pa.array([False, True] * 20)),
        whole.select(["id", "name", "label", "weight", "bytes"]),
    ]
    prints = set()
    for each in (whole, *others):
        write_parquet(each, tmp_path / "a.parquet")
        prints.add(pq.read_schema(tmp_path / "a.parquet").metadata[FINGERPRINT])
    assert len(prints) == 1 + len(others)


def test_no_flipped_bit_changes_the_table(tmp_path):
    file = tmp_path / "a.parquet"
    write_parquet(table(), file)
    good = file.read_bytes()
    refused = 0
    rng = np.random.default_rng(0)
    for place in rng.choice(len(good), 400, replace=False).tolist():
        file.write_bytes(good[:place] + bytes([good[place] ^ 1 << place % 8]) + good[place + 1 :])
        try:
            found = read_parquet(file)
        except (OSError, ValueError, pa.ArrowException):
            refused += 1
            continue
        assert found.to_pydict() == table().to_pydict(), place
    assert refused > 200


def test_changed_table_with_old_fingerprint_is_rejected(tmp_path):
    pq.write_table(table(), tmp_path / "theirs.parquet")
    assert read_parquet(tmp_path / "theirs.parquet").equals(table())
    write_parquet(table(), tmp_path / "ours.parquet")
    pq.write_table(pq.read_table(tmp_path / "ours.parquet").slice(3), tmp_path / "ours.parquet")
    with pytest.raises(ValueError, match="another program changed it"):
        read_parquet(tmp_path / "ours.parquet")
