"""Parquet files that say what they hold: a change of any byte that matters is seen when they are read.

Checksums of pages leave out the footer, where names, types and places of columns stand. So the metadata of the schema
also carries a fingerprint of the table itself. Files of other programs have none, and are read as they are.
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
    """Write a table, whole or not at all, with its fingerprint."""
    fingerprint = {FINGERPRINT: hash_pieces(_pieces(table)).encode()}
    with replacing(path) as temporary:
        signed = table.replace_schema_metadata(_other_metadata(table) | fingerprint)
        pq.write_table(signed, temporary, write_page_checksum=True)


def read_parquet(path: Path) -> pa.Table:
    """The table of a file, memory-mapped; ValueError, OSError or pa.ArrowException where it cannot be read."""
    table = pq.read_table(path, memory_map=True, page_checksum_verification=True)
    known = (table.schema.metadata or {}).get(FINGERPRINT)
    table = table.replace_schema_metadata(_other_metadata(table) or None)
    if known is not None and known != hash_pieces(_pieces(table)).encode():
        raise ValueError(
            "it is not as it was written, but damaged; or another program changed it and kept the old fingerprint, "
            f"{FINGERPRINT.decode()} in the metadata of its schema"
        )
    return table


def _other_metadata(table: pa.Table) -> dict[bytes, bytes]:
    """The metadata of the schema without the fingerprint."""
    return {name: value for name, value in (table.schema.metadata or {}).items() if name != FINGERPRINT}


def _pieces(table: pa.Table) -> Iterator[bytes | memoryview]:
    """Names, types and values, however a column is cut into chunks and its texts are numbered."""
    yield repr(sorted(_other_metadata(table).items())).encode()
    for name, column in zip(table.column_names, table.columns, strict=True):
        yield f"\n{name}: {column.type}\n".encode()
        chunks = [each.dictionary_decode() if pa.types.is_dictionary(each.type) else each for each in column.chunks]
        yield from (each.is_null().to_numpy(zero_copy_only=False).tobytes() for each in chunks)
        chunks = [each.drop_null() for each in chunks]
        if chunks and not pa.types.is_primitive(chunks[0].type):  # texts and bytes
            chunks = [each.cast(pa.large_binary()) for each in chunks]
            yield from (pc.binary_length(each).to_numpy().tobytes() for each in chunks)
            yield from map(_bytes, chunks)
        else:
            yield from (each.to_numpy(zero_copy_only=False).tobytes() for each in chunks)


def _bytes(values: pa.Array) -> memoryview:
    """All texts of an array one after the other, without a copy."""
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1] if offsets else [0]
    return memoryview(data or b"")[ends[0] : ends[-1]]
