"""Parquet files with a fingerprint, so that damage is detected when they are read.

Page checksums do not cover the footer, which holds names, types and positions of columns. So the schema's metadata
also has a fingerprint of the table. Files of other programs have none and are read without this check.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from justright.utils.files import replacing
from justright.utils.hashing import hash_pieces

FINGERPRINT = b"justright_print"


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write a table atomically, with its fingerprint."""
    fingerprint = hash_pieces(_pieces(table)).encode()
    signed = table.replace_schema_metadata(_other_metadata(table) | {FINGERPRINT: fingerprint})
    with replacing(path) as temporary:
        pq.write_table(signed, temporary, write_page_checksum=True)


def read_parquet(path: Path) -> pa.Table:
    """Read a table, memory-mapped; raises ValueError, OSError or pa.ArrowException."""
    table = pq.read_table(path, memory_map=True, page_checksum_verification=True)
    known = (table.schema.metadata or {}).get(FINGERPRINT)
    table = table.replace_schema_metadata(_other_metadata(table) or None)
    if known is not None and known != hash_pieces(_pieces(table)).encode():
        raise ValueError(
            "it is damaged, or another program changed it and kept the old fingerprint, "
            f"{FINGERPRINT.decode()} in the metadata of its schema"
        )
    return table


def _other_metadata(table: pa.Table) -> dict[bytes, bytes]:
    """The metadata of the schema without the fingerprint."""
    return {name: value for name, value in (table.schema.metadata or {}).items() if name != FINGERPRINT}


def _pieces(table: pa.Table) -> Iterator[bytes | memoryview]:
    """Names, types and values, independent of chunks and dictionary encoding."""
    yield repr(sorted(_other_metadata(table).items())).encode()
    for name, column in zip(table.column_names, table.columns, strict=True):
        yield f"\n{name}: {column.type}\n".encode()
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        yield from (chunk.is_null().to_numpy(zero_copy_only=False).tobytes() for chunk in column.chunks)
        column = column.drop_null()
        if pa.types.is_primitive(column.type):
            yield from (chunk.to_numpy(zero_copy_only=False).tobytes() for chunk in column.chunks)
        else:  # text and bytes
            column = column.cast(pa.large_binary())
            yield from (pc.binary_length(chunk).to_numpy().tobytes() for chunk in column.chunks)
            yield from map(_bytes, column.chunks)


def _bytes(values: pa.Array) -> memoryview:
    """All values of an array one after the other, without a copy."""
    _, offsets, data = values.buffers()
    if not offsets or not data:
        return memoryview(b"")
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    return memoryview(data)[ends[0] : ends[-1]]
