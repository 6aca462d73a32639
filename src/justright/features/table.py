"""FeatureTable: features with the id, label and path of each image, in memory or mapped from a store, without torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int

from justright.data.columns import NAME
from justright.data.quarantine import Quarantined
from justright.features.store import (
    FeatureRows,
    Header,
    StoredRows,
    StoreMismatchError,
    begin_store,
    data_fingerprint,
    mapped,
    read_quarantine,
    read_store,
    write_store,
)
from justright.utils.errors import DataError
from justright.utils.remote import Place, place_of
from justright.utils.types import UNLABELED, Array, Labels

BLOCK_ROWS = 4096


@dataclass(frozen=True)
class FeatureTable:
    """Features, and one row of the index for each: id, label, class_name, dataset, path, and other columns of images.

    `features` is a read-only memory map when the table was opened from disk, and `FileRows` when it was opened from a
    remote store; `path` is the store.
    """

    features: StoredRows
    index: pa.Table
    header: Header
    path: Place | None = None

    def __post_init__(self) -> None:
        if len(self.features) != self.index.num_rows:
            raise DataError(f"{len(self.features):,} features and {self.index.num_rows:,} rows of their index")

    @classmethod
    def of(cls, features: FeatureRows, **columns: Any) -> FeatureTable:
        """A table in memory, from arrays: `label`, `id`, `class_name`, `dataset`, `path`, one entry per row each."""
        n = len(features)
        defaults = {
            "id": [str(row) for row in range(n)],
            "label": np.full(n, UNLABELED),
            "class_name": pa.nulls(n, NAME),
            "dataset": ["given"] * n,
            "path": [""] * n,
        }
        columns = defaults | columns
        index = pa.table(columns)
        header = Header(features.shape[1:], str(features.dtype), data=data_fingerprint(columns["id"], index))
        return cls(features, index, header)

    @classmethod
    def open(cls, path: Place | str, verify: bool = True) -> FeatureTable:
        """Open a finished store, a folder or an address of fsspec; raises with the name of a damaged file.

        `verify` reads the features once to compare their checksums, about a second for each gigabyte or two.
        """
        place = place_of(path)
        features, index, header = read_store(place, verify)
        return cls(features, index, header, place)

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        size = " x ".join(f"{n:,}" for n in self.features.shape)
        return f"FeatureTable({size} {self.header.dtype}, {len(self.classes):,} classes)"

    @cached_property
    def labels(self) -> Labels:
        """One label per row, -1 where unknown."""
        labels = self.index["label"].to_numpy().astype(np.int64)
        labels.flags.writeable = False
        return labels

    @property
    def ids(self) -> list[str]:
        """One id per row; images of equal content share an id."""
        return list(self.index["id"].to_pylist())

    @property
    def paths(self) -> list[str]:
        """Where the image of each row lies inside its source."""
        return list(self.index["path"].to_pylist())

    @property
    def datasets(self) -> list[str]:
        """The data set of each row."""
        return list(self.index["dataset"].to_pylist())

    @cached_property
    def classes(self) -> dict[int, str]:
        """Class name by label, in the order of the labels."""
        labels, first = np.unique(self.labels, return_index=True)
        names = self.index["class_name"].take(pa.array(first)).to_pylist()
        pairs = zip(labels.tolist(), names, strict=True)
        return {label: name or str(label) for label, name in pairs if label != UNLABELED}

    @cached_property
    def bad_rows(self) -> dict[int, Quarantined]:
        """The bad images, by their position among the images that the features were computed from."""
        return {} if self.path is None else read_quarantine(self.path)

    @property
    def quarantined(self) -> list[Quarantined]:
        """The bad images in order."""
        return list(self.bad_rows.values())

    def from_row(self, start: int) -> FeatureTable:
        """The rows from `start` on, memory-mapped if the table is."""
        features = self.features[start:] if self.path is None else mapped(self.path, self.header, len(self), start)
        return self._part(features, self.index.slice(start))

    def take(self, rows: Sequence[int] | Int[Array, " rows"]) -> FeatureTable:
        """The rows at these positions, in this order, in memory."""
        rows = np.asarray(rows, dtype=np.int64)
        return self._part(self.features[rows], self.index.take(pa.array(rows)))

    def _part(self, features: StoredRows, index: pa.Table) -> FeatureTable:
        header = replace(self.header, data=data_fingerprint(index["id"].to_pylist(), index))
        return FeatureTable(features, index, header)

    def without_labels(self) -> FeatureTable:
        """The same features, without the columns that reveal a class."""
        columns, n = self.index.column_names, len(self)
        public = {name: self.index[name] for name in ("id", "source", "dataset", "path") if name in columns}
        hidden = {"label": pa.array(np.full(n, UNLABELED, np.int32)), "class_name": pa.nulls(n, NAME)}
        return FeatureTable(self.features, pa.table(public | hidden), self.header, self.path)

    def write(self, path: Place | str, overwrite: bool = False) -> FeatureTable:
        """Write the table as a store and open it; an existing store must hold these features."""
        place = place_of(path)
        if not begin_store(place, self.header, overwrite):
            write_store(place, self.header, row_blocks(self.features), self.index, self.bad_rows)
            return FeatureTable.open(place)
        stored = FeatureTable.open(place)
        for mine, other in zip(row_blocks(self.features), row_blocks(stored.features), strict=True):
            if not np.array_equal(mine, other, equal_nan=True):  # users may choose ids: equal ones prove nothing
                raise StoreMismatchError(
                    f"{place} holds other features under the same ids",
                    advice="name another place, or replace it with overwrite",
                )
        return stored


def row_blocks(features: StoredRows) -> Iterator[FeatureRows]:
    """Features in order, some rows at a time."""
    return (features[start : start + BLOCK_ROWS] for start in range(0, len(features), BLOCK_ROWS))


def labeled_and_target(labeled: FeatureTable, target: FeatureTable) -> tuple[Float[Array, "images dim"], Labels]:
    """The features of both, labeled ones first, and labels; all of the target count as unlabeled."""
    labeled.header.require_comparable(target.header)
    if (labeled.labels == UNLABELED).all():
        raise DataError("none of the labeled images has a label", expected="features extracted from labeled images")
    features = np.concatenate([labeled.features, target.features]).astype(np.float32, copy=False)
    return features, np.concatenate([labeled.labels, np.full(len(target), UNLABELED)])
