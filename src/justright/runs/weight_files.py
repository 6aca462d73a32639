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
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from jaxtyping import Float

from justright.data.columns import NAME
from justright.errors import DataError
from justright.features.table import FeatureTable
from justright.files import replacing
from justright.runs.feature_pool import FeaturePool, spread
from justright.runs.selection_result import SelectionResult
from justright.selection import BetaSelector
from justright.selection.beta_weights import peak_similarity, weight_reason
from justright.types import Array

FORMAT = "justright weights 1"
KEPT = "kept: one of the target's own classes"
KEY = b"justright"


@dataclass(frozen=True)
class SavedSelection:
    """A selection as read back: a row an image, a row a class, and what made them."""

    images: pa.Table
    classes: pa.Table
    about: dict[str, Any]

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


def class_file(path: Path) -> Path:
    """Where the classes of a file of weights stand: `weights.parquet` has `weights.classes.parquet`."""
    return path.with_name(f"{path.stem}.classes{path.suffix}")


def image_table(result: SelectionResult) -> pa.Table:
    """One row an image. The reason is that of its class, unless images were weighed one by one."""
    table = result.pool.index().append_column("weight", pa.array(result.sample_weight))
    selector = result.selector
    if isinstance(selector, BetaSelector) and selector.level == "image":
        peak = peak_similarity(selector.alpha, selector.beta, selector.domain, selector.target_similarity_)
        pairs = zip(selector.image_weight_.tolist(), selector.image_similarity_.tolist(), strict=True)
        is_hard = selector.threshold is not None
        column = pa.array([weight_reason(weight, similarity, peak, is_hard) for weight, similarity in pairs]).cast(NAME)
    else:
        column = spread(selector.reason_, pa.array(result.pool.labels))
    return table.append_column("reason", column)


def save_selection(path: Path, result: SelectionResult, target: FeatureTable, kept: FeaturePool | None = None) -> Path:
    """Write both files and give the name of the second. Each is whole or not there.

    `kept` are images that nobody weighs: the target's own. They stand first and weigh 1.
    """
    n_kept = 0 if kept is None else len(kept.origins)
    about = {
        "format": FORMAT,
        "selector": result.name,
        "params": result.selector.get_params(),
        "kept_classes": n_kept,
        "kept_images": 0 if kept is None else len(kept),
        "backbone": dict(result.pool.tables[0].header.backbone),
        "pool": [dict(table.header.data) for table in result.pool.tables],
        # what the labels and paths of the target hash to is left out: no trace of them may reach the file
        "target": {name: target.header.data.get(name) for name in ("images", "content")},
    }
    for name in ("threshold", "target_similarity"):
        if math.isfinite(found := getattr(result.selector, f"{name}_", math.nan)):
            about[name] = found
    said = {KEY: json.dumps(about).encode()}
    images, classes = image_table(result), result.class_table
    if kept is not None:
        images, classes = _behind(images, _kept_images(kept), n_kept), _behind(classes, _kept_classes(kept), n_kept)
    for file, table in ((path, images), (class_file(path), classes)):
        with replacing(file) as temporary:
            pq.write_table(table.replace_schema_metadata(said), temporary)
    return class_file(path)


def _kept_images(kept: FeaturePool) -> pa.Table:
    reasons = spread([KEPT] * len(kept.origins), pa.array(kept.labels))
    return kept.index().append_column("weight", pa.array(np.ones(len(kept)))).append_column("reason", reasons)


def _kept_classes(kept: FeaturePool) -> pa.Table:
    n = len(kept.origins)
    return pa.table(
        {
            "label": np.arange(n),
            "dataset": [origin.dataset for origin in kept.origins],
            "class_name": kept.class_names,
            "n_images": kept.counts,
            "weight": np.ones(n),
            "reason": [KEPT] * n,
        }
    )


def _behind(table: pa.Table, first: pa.Table, n_classes: int) -> pa.Table:
    """The rows of `first`, then those of the table, whose labels move on by so many classes."""
    place = table.schema.get_field_index("label")
    moved = pc.add(table["label"], pa.scalar(n_classes, table["label"].type))
    return pa.concat_tables([first, table.set_column(place, "label", moved)], promote_options="default")


def load_selection(path: Path) -> SavedSelection:
    """Read what `save_selection` wrote."""
    try:
        images, classes = pq.read_table(path), pq.read_table(class_file(path))
        about = json.loads((images.schema.metadata or {})[KEY])
        if about["format"] != FORMAT:
            raise ValueError(f"format {about['format']!r}")
    except (OSError, pa.ArrowInvalid, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} does not hold weights of this version: {error}",
            expected=f"the file and its neighbor {class_file(path).name}",
            advice="justright select --out writes both",
        ) from error
    return SavedSelection(images, classes, about)
