"""Names of classes as they are compared: in one Unicode form; and names that a person cannot tell apart.

A Mac writes ü as u and a combining mark (NFD), most others as one character (NFC). Names are read as NFC.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable

import pyarrow as pa


def nfc(name: str) -> str:
    """The name in the one form that all names of classes have."""
    return unicodedata.normalize("NFC", name)


def nfc_column(names: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A column of names in that form, of the type that it has.

    Arrow has a function for it, but its release 16 composes nothing. Each different name is made once.
    """
    if isinstance(names, pa.ChunkedArray):
        return pa.chunked_array([nfc_column(chunk) for chunk in names.chunks], names.type)
    coded = names if pa.types.is_dictionary(names.type) else names.dictionary_encode()
    before: list[str | None] = coded.dictionary.to_pylist()
    made = [None if name is None else nfc(name) for name in before]
    if made == before:
        return names
    made_of = pa.array(made, coded.dictionary.type)
    return made_of.take(coded.indices).cast(names.type)  # two forms of a name become one entry


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
