"""The features of several labeled data sets as one pool with one label space, read shard by shard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int

from justright.data.columns import NAME, names_column, nfc
from justright.data.pool import Origin
from justright.features.table import FeatureTable
from justright.selection import row_shards
from justright.selection.shards import ArrayLike
from justright.utils.errors import DataError
from justright.utils.types import UNLABELED, Array, Labels


@dataclass(frozen=True)
class FeaturePool:
    """Feature tables one after the other; `labels` are aligned with their rows, `origins` with the labels 0, 1, ..."""

    tables: tuple[FeatureTable, ...]
    labels: Labels
    origins: tuple[Origin, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[tuple[ArrayLike, Int[Array, " rows"]]]:
        """Features (in memory or on disk) and labels, shard by shard."""
        start = 0
        for table in self.tables:
            own = self.labels[start : start + len(table)]
            yield from zip(row_shards(table.features), map(np.asarray, row_shards(own)), strict=True)
            start += len(table)

    @cached_property
    def class_names(self) -> list[str]:
        """The name of each class, by label."""
        return [origin.name for origin in self.origins]

    @cached_property
    def counts(self) -> Int[Array, " classes"]:
        """Number of images of each label."""
        return np.bincount(self.labels, minlength=len(self.origins))

    @cached_property
    def features(self) -> Float[Array, "images dim"]:
        """All rows as one array: memory-mapped for a single local table, else a copy."""
        if len(self.tables) == 1:
            return np.asarray(self.tables[0].features)
        return np.concatenate([table.features for table in self.tables])

    def take(self, rows: Int[Array, " rows"]) -> Float[Array, "rows dim"]:
        """The features of some rows in ascending order, without loading the others."""
        starts = np.cumsum([0, *map(len, self.tables)])
        inside = [rows[(rows >= a) & (rows < b)] - a for a, b in pairwise(starts)]
        return np.concatenate([table.features[own] for table, own in zip(self.tables, inside, strict=True)])

    def index(self) -> pa.Table:
        """One row per image: id, dataset, path, label, class_name."""
        kinds = {"id": pa.string(), "dataset": NAME, "path": pa.string()}  # tables may use other types
        parts = [
            pa.table({name: table.index[name].cast(pa.string()).cast(kind) for name, kind in kinds.items()})
            for table in self.tables
        ]
        labels = pa.array(self.labels.astype(np.int32))
        table = pa.concat_tables(parts).unify_dictionaries().append_column("label", labels)
        return table.append_column("class_name", names_column(self.class_names, self.labels))


def merge_tables(tables: Sequence[FeatureTable]) -> FeaturePool:
    """Merge labeled tables; labels follow the order of the tables, then of their data sets, then of their own labels.

    Classes are named `dataset/class`. Raises for two data sets of the same name, for unlabeled rows, and for features
    of different backbones. The order of rows does not change.
    """
    if not tables:
        raise DataError("the pool is empty", expected="at least one feature store")
    labels: list[Int[Array, " _"]] = []
    origins: list[Origin] = []
    for table in tables:
        tables[0].header.require_comparable(table.header)
        require_flat(table)
        datasets, dataset_of_row = _datasets(table)
        if twice := sorted({origin.dataset for origin in origins} & set(datasets)):
            raise DataError(
                f"two stores of the pool hold a data set called {twice[0]!r}",
                expected="different names, because classes are named dataset/class",
                advice="give each store once, or extract one of them under another name",
            )
        if n := int((table.labels == UNLABELED).sum()):
            raise DataError(
                f"{n:,} of the {len(table):,} images of {', '.join(sorted(datasets))} have no label",
                expected="labeled images in the pool",
                advice="extract the labeled images alone, or give this store as --target",
            )
        own = np.zeros(len(table), dtype=np.int64)
        for number, dataset in enumerate(datasets):
            rows = np.flatnonzero(dataset_of_row == number)
            found, first, position = np.unique(table.labels[rows], return_index=True, return_inverse=True)
            names = table.index["class_name"].take(pa.array(rows[first])).to_pylist()
            own[rows] = len(origins) + position
            for label, name in zip(found.tolist(), names, strict=True):
                # classes of an extracted pool are named dataset/class already
                origins.append(Origin(dataset, label, nfc(name or str(label)).removeprefix(f"{dataset}/")))
        labels.append(own)
    return FeaturePool(tuple(tables), np.concatenate(labels), tuple(origins))


def require_flat(table: FeatureTable) -> None:
    """Raise unless there is one vector per image."""
    if len(table.header.shape) != 1:
        size = " x ".join(map(str, table.header.shape))
        raise DataError(
            f"{size} numbers per image in {', '.join(_datasets(table)[0])}",
            expected="one vector per image",
            advice="extract again with --pooling class or average",
        )


def _datasets(table: FeatureTable) -> tuple[list[str], Int[Array, " rows"]]:
    """The data sets of a table in order of appearance, and the number of the data set of each row."""
    column = table.index["dataset"].cast(pa.string()).combine_chunks().dictionary_encode()
    return column.dictionary.to_pylist(), column.indices.to_numpy()
