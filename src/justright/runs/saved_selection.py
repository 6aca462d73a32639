"""A selection as its files have it: what `justright select` leaves and training reads, and that summed up by data set.

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

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float

from justright.data.parquet import read_parquet
from justright.data.pool import dataset_title
from justright.selection import ClassWeights
from justright.utils.errors import DataError
from justright.utils.files import parsed_json
from justright.utils.types import Array

CLASS_COLUMNS = ("label", "dataset", "class_name", "n_images", "weight", "reason")
IMAGE_COLUMNS = ("id", "dataset", "path", "label", "class_name", "weight", "reason")
STABILITY_COLUMNS = ("kept_share", "weight_std")
FORMAT = "justright weights 1"
KEY = b"justright"
ABOUT = ("format", "selector", "params", "kept_classes", "kept_images", "backbone", "pool", "target")


@dataclass(frozen=True)
class SavedSelection:
    """A row an image, a row a class, and what made them.

    images   IMAGE_COLUMNS
    classes  CLASS_COLUMNS, then the columns the selector gives, then STABILITY_COLUMNS if that was asked for
    about    the name of the selector, its params, and numbers it found by itself
    """

    images: pa.Table
    classes: pa.Table
    about: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of the selector."""
        return str(self.about["selector"])

    @property
    def weighed(self) -> SavedSelection:
        """The classes that the selector weighed, and their images: all but the target's own that simply stay."""
        n_kept = int(self.about.get("kept_classes", 0))
        images = self.images.filter(pc.greater_equal(self.images["label"], n_kept))
        return SavedSelection(images, self.classes.slice(n_kept), self.about)

    @property
    def sample_weight(self) -> Float[Array, " images"]:
        """The weight of each image, in the order of the pool."""
        return self.images["weight"].to_numpy()

    @cached_property
    def weights(self) -> ClassWeights:
        """What the selector decided about the classes."""
        more = [name for name in self.classes.column_names if name not in CLASS_COLUMNS + STABILITY_COLUMNS]
        return ClassWeights(
            self.classes["label"].to_numpy().astype(np.int64),
            self.classes["weight"].to_numpy().astype(np.float64),
            self.classes["reason"].to_pylist(),
            columns={name: self.classes[name].to_numpy() for name in more},
            found={name: value for name, value in self.about.items() if name not in ABOUT},
        )

    def source_rows(self) -> list[dict[str, Any]]:
        """A row a data set: how much of it is kept, and how close its classes are to the target.

        They are in the order of the pool, with a last one for all if there are several.
        """
        of_class = np.array(self.classes["dataset"].to_pylist(), dtype=object)
        parts = [(dataset, of_class == dataset) for dataset in dict.fromkeys(of_class.tolist())]
        if len(parts) > 1:
            parts.append(("all", np.ones(len(of_class), dtype=bool)))
        return [{"dataset": dataset} | self._summed_up(is_member) for dataset, is_member in parts]

    def source_columns(self) -> list[str]:
        """The head of the table by data set."""
        columns, measure = ["data set", "classes", "kept", "images", "kept images", "mean weight"], self.weights.measure
        if not measure:
            return columns
        first, last = ("most", "least") if measure == "similarity" else ("least", "most")
        return [*columns, f"{first} {measure}", "median", last]

    def source_cells(self) -> list[tuple[object, ...]]:
        """The rows under `source_columns`."""
        n = len(self.source_columns())
        return [(dataset_title(name), *rest)[:n] for name, *rest in (row.values() for row in self.source_rows())]

    def _summed_up(self, is_member: Bool[Array, " classes"]) -> dict[str, Any]:
        of_class, of_image = self.weights, self.images["label"].to_numpy()
        weight = self.sample_weight[is_member[np.searchsorted(of_class.classes, of_image)]]
        ends: list[float | None] = [None, None, None]
        if of_class.measure:
            ends = np.quantile(of_class.columns[of_class.measure][is_member], [0, 0.5, 1]).tolist()
        closest, median, farthest = ends if of_class.measure == "distance" else ends[::-1]
        return {
            "n_classes": int(is_member.sum()),
            "n_kept_classes": int((of_class.weight[is_member] > 0).sum()),
            "n_images": len(weight),
            "n_kept_images": int((weight > 0).sum()),
            "mean_weight": float(weight.mean()),
            "closest": closest,
            "median": median,
            "farthest": farthest,
        }

    def summary(self) -> str:
        """The outcome in a line."""
        of_class, of_image = self.weights.weight, self.sample_weight
        return (
            f"{self.name}: {int((of_class > 0).sum()):,} of {len(of_class):,} classes and "
            f"{int((of_image > 0).sum()):,} of {len(of_image):,} images kept, mean weight {of_image.mean():.3g}"
        )


def class_file(path: Path) -> Path:
    """Where the classes of a file of weights stand: `weights.parquet` has `weights.classes.parquet`."""
    return path.with_name(f"{path.stem}.classes{path.suffix}")


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
