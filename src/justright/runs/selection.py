"""The features of a pool, the weights that a selection gave to its images and classes, and their files.

    weights.parquet          one row per image, in the order of the pool:
                             id, dataset, path, label, class_name, weight, reason
    weights.classes.parquet  one row per class:
                             label, dataset, class_name, n_images, weight, reason, similarity or distance, ...

In a run the target's own classes come first. Unless they were selected from, they weigh 1 and have no similarity or
distance. Both files hold JSON in the schema metadata under the key `justright`: the selector with its parameters, a
threshold that it computed, and the features it saw. The same features and parameters give the same bytes; neither
labels of the target nor paths of stores change them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float, Int

from justright.data.columns import NAME, names_column, nfc
from justright.data.parquet import read_parquet, write_parquet
from justright.data.pool import Origin, dataset_title
from justright.features.table import FeatureTable
from justright.selection import ClassWeights, Selector, Stability, row_shards, stability
from justright.selection.shards import ArrayLike
from justright.utils.errors import DataError
from justright.utils.files import parsed_json
from justright.utils.types import UNLABELED, Array, Labels

CLASS_COLUMNS = ("label", "dataset", "class_name", "n_images", "weight", "reason")
IMAGE_COLUMNS = ("id", "dataset", "path", "label", "class_name", "weight", "reason")
STABILITY_COLUMNS = ("kept_share", "weight_std")
FORMAT = "justright weights 1"
KEY = b"justright"
ABOUT = ("format", "selector", "params", "kept_classes", "kept_images", "backbone", "pool", "target")
KEPT = "kept: one of the target's own classes"


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
            classes, first, position = np.unique(table.labels[rows], return_index=True, return_inverse=True)
            names = table.index["class_name"].take(pa.array(rows[first])).to_pylist()
            own[rows] = len(origins) + position
            for label, name in zip(classes.tolist(), names, strict=True):
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


@dataclass(frozen=True)
class Selection:
    """One row per image, one row per class, and the settings of the selector."""

    images: pa.Table  # IMAGE_COLUMNS
    classes: pa.Table  # CLASS_COLUMNS, columns of the selector, and STABILITY_COLUMNS if stability was measured
    about: dict[str, Any]  # the name of the selector, its parameters, and numbers that it computed
    pool: FeaturePool | None = None  # None if the selection was loaded from files
    stability: Stability | None = None

    @classmethod
    def of(
        cls, name: str, given: Selector | ClassWeights, pool: FeaturePool, stability: Stability | None = None
    ) -> Selection:
        """The selection of a fitted selector, or by weights of another origin; `name` is that of either."""
        weights, params = (given, {}) if isinstance(given, ClassWeights) else (given.weights_, given.get_params())
        about: dict[str, Any] = {"selector": name, "params": params}
        about |= {key: value for key, value in weights.found.items() if math.isfinite(value)}
        return cls(_image_table(pool, weights), _class_table(pool, weights, stability), about, pool, stability)

    @property
    def name(self) -> str:
        """The name of the selector."""
        return str(self.about["selector"])

    @property
    def weighed(self) -> Selection:
        """Only what the selector weighed: without the target's own classes, which always keep the weight 1."""
        n_kept = int(self.about.get("kept_classes", 0))
        images = self.images.filter(pc.greater_equal(self.images["label"], n_kept))
        return Selection(images, self.classes.slice(n_kept), self.about)

    @property
    def sample_weight(self) -> Float[Array, " images"]:
        """The weight of each image, in the order of the pool."""
        return self.images["weight"].to_numpy()

    @cached_property
    def weights(self) -> ClassWeights:
        """The weights of the classes."""
        more = [name for name in self.classes.column_names if name not in CLASS_COLUMNS + STABILITY_COLUMNS]
        return ClassWeights(
            self.classes["label"].to_numpy().astype(np.int64),
            self.classes["weight"].to_numpy().astype(np.float64),
            self.classes["reason"].to_pylist(),
            columns={name: self.classes[name].to_numpy() for name in more},
            found={name: value for name, value in self.about.items() if name not in ABOUT},
        )

    def source_rows(self) -> list[dict[str, Any]]:
        """One row per data set in the order of the pool, and one for all: the kept share and the similarity."""
        datasets = np.array(self.classes["dataset"].to_pylist(), dtype=object)
        parts = {dataset: datasets == dataset for dataset in dict.fromkeys(datasets.tolist())}
        if len(parts) > 1:
            parts["all"] = np.ones(len(datasets), dtype=bool)
        return [{"dataset": dataset} | self._summary_of(is_member) for dataset, is_member in parts.items()]

    def source_columns(self) -> list[str]:
        """The header of the table of data sets."""
        columns, measure = ["data set", "classes", "kept", "images", "kept images", "mean weight"], self.weights.measure
        if not measure:
            return columns
        first, last = ("most", "least") if measure == "similarity" else ("least", "most")
        return [*columns, f"{first} {measure}", "median", last]

    def source_cells(self) -> list[tuple[object, ...]]:
        """The rows under `source_columns`."""
        n = len(self.source_columns())
        rows = [list(row.values()) for row in self.source_rows()]
        return [(dataset_title(name), *rest)[:n] for name, *rest in rows]

    def _summary_of(self, is_member: Bool[Array, " classes"]) -> dict[str, Any]:
        weights, labels = self.weights, self.images["label"].to_numpy()
        weight = self.sample_weight[is_member[np.searchsorted(weights.classes, labels)]]
        ends: list[float | None] = [None, None, None]
        if weights.measure:
            ends = np.quantile(weights.columns[weights.measure][is_member], [0, 0.5, 1]).tolist()
        closest, median, farthest = ends if weights.measure == "distance" else ends[::-1]
        return {
            "n_classes": int(is_member.sum()),
            "n_kept_classes": int((weights.weight[is_member] > 0).sum()),
            "n_images": len(weight),
            "n_kept_images": int((weight > 0).sum()),
            "mean_weight": float(weight.mean()),
            "closest": closest,
            "median": median,
            "farthest": farthest,
        }

    def summary(self) -> str:
        """The result in one line."""
        classes, images = self.weights.weight, self.sample_weight
        return (
            f"{self.name}: {int((classes > 0).sum()):,} of {len(classes):,} classes and "
            f"{int((images > 0).sum()):,} of {len(images):,} images kept, mean weight {images.mean():.3g}"
        )

    def to_json(self) -> dict[str, Any]:
        """The selection as plain values."""
        stable = self.stability
        return {
            "selector": self.name,
            "params": self.about["params"],
            "sources": self.source_rows(),
            "classes": self.classes.to_pylist(),
            "stability": stable and {"n_resamples": stable.n_resamples, "n_failed": stable.n_failed},
        }


def stability_of(
    selector: Selector, pool: FeaturePool, target: FeatureTable, n_resamples: int | None, seed: int
) -> Stability | None:
    """The stability of a fitted selector over resamples of the target; None without resamples."""
    if not n_resamples:
        return None
    return stability(
        selector,
        pool.features,
        pool.labels,
        target.features,
        target_clusters=getattr(selector, "target_clusters_", None),
        n_resamples=n_resamples,
        seed=seed,
    )


def class_file(path: Path) -> Path:
    """The file of the classes: `weights.classes.parquet` for `weights.parquet`."""
    return path.with_name(f"{path.stem}.classes{path.suffix}")


def save_selection(path: Path, result: Selection, target: FeatureTable, kept: FeaturePool | None = None) -> Path:
    """Write both files atomically and return the path of the classes.

    kept: images of the target's own classes, which were not weighed. They come first with the weight 1.
    """
    assert result.pool is not None, "a loaded selection is on disk already"
    n_kept = 0 if kept is None else len(kept.origins)
    about = {
        "format": FORMAT,
        "selector": result.name,
        "params": result.about["params"],
        "kept_classes": n_kept,
        "kept_images": 0 if kept is None else len(kept),
        "backbone": dict(result.pool.tables[0].header.backbone),
        "pool": [dict(table.header.data) for table in result.pool.tables],
        # without hashes of the target's labels and paths: no trace of them may reach the file
        "target": {name: target.header.data.get(name) for name in ("images", "content")},
    } | dict(result.weights.found)
    metadata = {KEY: json.dumps(about).encode()}
    images, classes = result.images, result.classes
    if kept is not None:
        ones = ClassWeights(np.arange(n_kept), np.ones(n_kept), [KEPT] * n_kept)
        images = _append(_image_table(kept, ones), images, n_kept)
        classes = _append(_class_table(kept, ones), classes, n_kept)
    for file, table in ((path, images), (class_file(path), classes)):
        write_parquet(table.replace_schema_metadata(metadata), file)
    return class_file(path)


def load_selection(path: Path) -> Selection:
    """Read the files of `save_selection`."""
    try:
        images, classes = (read_parquet(file) for file in (path, class_file(path)))
        about = parsed_json((images.schema.metadata or {})[KEY])
        if about["format"] != FORMAT:
            raise ValueError(f"format {about['format']!r}")
        if (classes.schema.metadata or {})[KEY] != images.schema.metadata[KEY]:
            raise ValueError("the two files belong to different selections")
        for table, names in ((images, IMAGE_COLUMNS), (classes, CLASS_COLUMNS)):
            for name in names:
                _require_type(table[name], name)
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} does not hold weights of this version: {error}",
            expected=f"the file and its neighbor {class_file(path).name}",
            advice="justright select --out writes both",
        ) from error
    return Selection(images, classes, about)


def _image_table(pool: FeaturePool, weights: ClassWeights) -> pa.Table:
    """One row per image, with its own reason if images were weighed one by one, else that of its class."""
    if weights.images is None:
        weight, reason = weights.weight[pool.labels], names_column(weights.reason, pool.labels)
    else:
        weight, reason = weights.images.weight, pa.array(weights.images.reason).cast(NAME)
    return pool.index().append_column("weight", pa.array(weight)).append_column("reason", reason)


def _class_table(pool: FeaturePool, weights: ClassWeights, stable: Stability | None = None) -> pa.Table:
    datasets = [origin.dataset for origin in pool.origins]
    values = (weights.classes, datasets, pool.class_names, pool.counts, weights.weight, weights.reason)
    columns: dict[str, Any] = dict(zip(CLASS_COLUMNS, values, strict=True)) | dict(weights.columns)
    if stable is not None:
        columns |= {name: getattr(stable, name) for name in STABILITY_COLUMNS}
    return pa.table(columns)


def _append(first: pa.Table, table: pa.Table, n_classes: int) -> pa.Table:
    """The rows of both tables; labels of the second start after the classes of the first."""
    place = table.schema.get_field_index("label")
    labels = pc.add(table["label"], pa.scalar(n_classes, table["label"].type))
    return pa.concat_tables([first, table.set_column(place, "label", labels)], promote_options="default")


def _require_type(column: pa.ChunkedArray, name: str) -> None:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    allows = {"label": pa.types.is_integer, "n_images": pa.types.is_integer, "weight": pa.types.is_floating}
    if not allows.get(name, pa.types.is_string)(kind) or (name in ("dataset", *allows) and column.null_count):
        raise ValueError(f"column {name} has the type {column.type}, or missing values")
