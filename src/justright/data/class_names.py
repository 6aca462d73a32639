"""Names of classes as they are compared: in one Unicode form; and names that a person cannot tell apart.

A Mac writes ü as u and a combining mark (NFD), most others as one character (NFC). Names are read as NFC.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc


def nfc(name: str) -> str:
    """The name in the one form that all names of classes have."""
    return unicodedata.normalize("NFC", name)


def nfc_column(names: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A column of names in that form, of the type that it has."""
    if isinstance(names, pa.ChunkedArray):
        return pa.chunked_array([nfc_column(chunk) for chunk in names.chunks], names.type)
    if not pa.types.is_dictionary(names.type):
        return pc.utf8_normalize(names, form="NFC")
    made = pc.utf8_normalize(names.dictionary, form="NFC")
    if made.equals(names.dictionary):
        return names
    return made.take(names.indices).cast(names.type)  # two forms of a name become one entry


def visible(name: str) -> str:
    """The name without case, and without characters that do not show: zero-width ones, soft hyphens, odd spaces."""
    shown = "".join(c for c in name if unicodedata.category(c) not in ("Cf", "Cc") and not "\ufe00" <= c <= "\ufe0f")
    return nfc(" ".join(shown.split()).casefold())


def look_alikes(names: Iterable[str]) -> list[list[str]]:
    """Groups of different names that differ only by case or by characters that do not show."""
    groups: dict[str, set[str]] = defaultdict(set)
    for name in names:
        groups[visible(name)].add(name)
    return sorted(sorted(group) for group in groups.values() if len(group) > 1)
