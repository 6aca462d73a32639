"""Header: where features come from. Two stores may be compared, or one continued, as far as their headers agree."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from justright.utils.errors import DataError
from justright.utils.hashing import hash_pieces
from justright.utils.settings import flat

PRINT_ROWS = 4096  # labels are hashed in pieces of so many: another number is another print
COMPARABLE = ("backbone", "transform")  # features that agree in these parts of the header may be compared


class StoreMismatchError(DataError):
    """Features of another backbone, transform or data than were asked for."""


class DamagedStoreError(DataError):
    """Files of a feature store are missing, cut short or changed."""


@dataclass(frozen=True)
class Header:
    """Where features come from. Equal headers mean equal bytes; what cannot change a byte is not in here."""

    shape: Sequence[int]
    dtype: str
    backbone: Mapping[str, Any] = field(default_factory=dict)
    transform: Mapping[str, Any] = field(default_factory=dict)
    computation: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)

    def differences(self, other: Header, parts: Sequence[str] = ()) -> list[str]:
        """One line for each entry that differs: `backbone.name: this, other`."""
        mine, theirs = _flat(self, parts), _flat(other, parts)
        names = [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]
        return [f"{name}: {mine.get(name, 'not given')}, {theirs.get(name, 'not given')}" for name in names]

    def require_comparable(self, other: Header) -> None:
        """Refuse features that another backbone or transform made: their distances mean nothing."""
        if lines := self.differences(other, COMPARABLE):
            raise StoreMismatchError("two feature tables do not belong together:\n" + indented(lines))


def data_fingerprint(content_ids: Sequence[str], table: pa.Table) -> dict[str, Any]:
    """The data as the header names them: how many images, their content, and all else the table says of them.

    Ids are named only where somebody gave other ids than the content.
    """
    # where a source lies on this machine does not matter
    rest = table.select([name for name in table.column_names if name not in ("id", "source")])
    starts = range(0, table.num_rows, PRINT_ROWS)
    said = hash_pieces(json.dumps(rest.slice(start, PRINT_ROWS).to_pydict()).encode() for start in starts)
    content = _hash_names(content_ids)
    given = table["id"].to_pylist() if "id" in table.column_names else content_ids
    ids = _hash_names(known or made for known, made in zip(given, content_ids, strict=True))
    print_ = {"images": len(content_ids), "content": content, "labels_and_paths": said}
    return print_ if ids == content else print_ | {"ids": ids}


def _hash_names(names: Iterable[str]) -> str:
    return hash_pieces(f"{name}\n".encode() for name in names)


def indented(lines: Sequence[str]) -> str:
    """The lines as they stand below a sentence of an error."""
    return "\n".join(f"  {line}" for line in lines)


def _flat(header: Header, parts: Sequence[str]) -> dict[str, Any]:
    value = flat({name: part for name, part in asdict(header).items() if not parts or name in parts})
    return json.loads(json.dumps(value))  # JSON has no tuples: what was read back and what was not must compare equal
