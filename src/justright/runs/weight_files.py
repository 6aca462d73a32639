"""Weights on disk: what `justright select` leaves and training reads.

    weights.parquet          one row an image, in the order of the pool:
                             id, dataset, path, label, class_name, weight, reason
    weights.classes.parquet  one row a class:
                             label, dataset, class_name, n_images, weight, reason, similarity or distance, ...

In a run the target's own classes come first. Unless they were selected from, they weigh 1, and what a selector compares
classes by is empty for them.

Both carry, as JSON in the metadata of the schema under the key `justright`, the selector with its parameters, the
threshold where it found one by itself, and what features it saw. Two runs that see the same features with the same
parameters write the same bytes; neither labels of the target nor where a store lies can change one.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from justright.data.parquet import read_parquet, write_parquet
from justright.errors import DataError
from justright.features.table import FeatureTable
from justright.files import parsed_json
from justright.runs.feature_pool import FeaturePool
from justright.runs.saved_selection import CLASS_COLUMNS, SavedSelection
from justright.runs.selection_result import SelectionResult, class_table, image_table
from justright.selection import ClassWeights

FORMAT = "justright weights 1"
KEPT = "kept: one of the target's own classes"
KEY = b"justright"
IMAGE_COLUMNS = ("id", "dataset", "path", "label", "class_name", "weight", "reason")


def class_file(path: Path) -> Path:
    """Where the classes of a file of weights stand: `weights.parquet` has `weights.classes.parquet`."""
    return path.with_name(f"{path.stem}.classes{path.suffix}")


def save_selection(path: Path, result: SelectionResult, target: FeatureTable, kept: FeaturePool | None = None) -> Path:
    """Write both files and give the name of the second. Each is whole or not there.

    `kept` are images that nobody weighs: the target's own. They stand first and weigh 1.
    """
    n_kept = 0 if kept is None else len(kept.origins)
    about = {
        "format": FORMAT,
        "selector": result.name,
        "params": result.about["params"],
        "kept_classes": n_kept,
        "kept_images": 0 if kept is None else len(kept),
        "backbone": dict(result.pool.tables[0].header.backbone),
        "pool": [dict(table.header.data) for table in result.pool.tables],
        # what the labels and paths of the target hash to is left out: no trace of them may reach the file
        "target": {name: target.header.data.get(name) for name in ("images", "content")},
    } | dict(result.weights.found)
    said = {KEY: json.dumps(about).encode()}
    images, classes = result.images, result.classes
    if kept is not None:
        ones = ClassWeights(np.arange(n_kept), np.ones(n_kept), [KEPT] * n_kept)
        images = _behind(images, image_table(kept, ones), n_kept)
        classes = _behind(classes, class_table(kept, ones), n_kept)
    for file, table in ((path, images), (class_file(path), classes)):
        write_parquet(table.replace_schema_metadata(said), file)
    return class_file(path)


def _behind(table: pa.Table, first: pa.Table, n_classes: int) -> pa.Table:
    """The rows of `first`, then those of the table with their labels raised by so many classes."""
    place = table.schema.get_field_index("label")
    moved = pc.add(table["label"], pa.scalar(n_classes, table["label"].type))
    return pa.concat_tables([first, table.set_column(place, "label", moved)], promote_options="default")


def load_selection(path: Path) -> SavedSelection:
    """Read what `save_selection` wrote."""
    try:
        images, classes = (read_parquet(file) for file in (path, class_file(path)))
        about = parsed_json((images.schema.metadata or {})[KEY])
        if about["format"] != FORMAT:
            raise ValueError(f"format {about['format']!r}")
        if (classes.schema.metadata or {})[KEY] != images.schema.metadata[KEY]:
            raise ValueError("the two files are not of one selection")
        for name in IMAGE_COLUMNS:
            _require_type(images[name], name)
        for name in CLASS_COLUMNS:
            _require_type(classes[name], name)
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} does not hold weights of this version: {error}",
            expected=f"the file and its neighbor {class_file(path).name}",
            advice="justright select --out writes both",
        ) from error
    return SavedSelection(images, classes, about)


def _require_type(column: pa.ChunkedArray, name: str) -> None:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    allows = {"label": pa.types.is_integer, "n_images": pa.types.is_integer, "weight": pa.types.is_floating}
    if not allows.get(name, pa.types.is_string)(kind) or (name in ("dataset", *allows) and column.null_count):
        raise ValueError(f"column {name} holds {column.type}, or nothing in some rows")
