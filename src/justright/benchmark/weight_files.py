"""Weights on disk: what `justright select` leaves and training reads.

    weights.parquet          one row an image, in the order of the pool:
                             id, dataset, path, label, class_name, weight, reason
    weights.classes.parquet  one row a class:
                             label, dataset, class_name, n_images, weight, reason, similarity or distance, ...

Both carry, as JSON in the metadata of the schema under the key `justright`, the selector with its parameters, the
threshold where it found one by itself, and what features it saw. Two runs that see the same features with the same
parameters write the same bytes; neither labels of the target nor where a store lies can change one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from jaxtyping import Float

from justright.benchmark.feature_pool import spread
from justright.benchmark.selection_result import SelectionResult
from justright.data.image_set import NAME
from justright.errors import DataError
from justright.features.table import FeatureTable
from justright.files import replacing
from justright.selection import BetaSelector
from justright.selection.beta_weights import peak_similarity, weight_reason
from justright.types import Array

FORMAT = "justright weights 1"
KEY = b"justright"


@dataclass(frozen=True)
class SavedSelection:
    """A selection as read back: a row an image, a row a class, and what made them."""

    images: pa.Table
    classes: pa.Table
    about: dict[str, Any]

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
        peak = peak_similarity(selector.alpha, selector.beta, selector.domain)
        pairs = zip(selector.image_weight_.tolist(), selector.image_similarity_.tolist(), strict=True)
        is_hard = selector.threshold is not None
        column = pa.array([weight_reason(weight, similarity, peak, is_hard) for weight, similarity in pairs]).cast(NAME)
    else:
        column = spread(selector.reason_, pa.array(result.pool.labels))
    return table.append_column("reason", column)


def save_selection(path: Path, result: SelectionResult, target: FeatureTable) -> Path:
    """Write both files and give the name of the second. Each is whole or not there."""
    about = {
        "format": FORMAT,
        "selector": result.name,
        "params": result.selector.get_params(),
        "backbone": dict(result.pool.tables[0].header.backbone),
        "pool": [dict(table.header.data) for table in result.pool.tables],
        # what the labels and paths of the target hash to is left out: no trace of them may reach the file
        "target": {name: target.header.data.get(name) for name in ("images", "content")},
    }
    if hasattr(result.selector, "threshold_"):
        about["threshold"] = result.selector.threshold_
    said = {KEY: json.dumps(about).encode()}
    for file, table in ((path, image_table(result)), (class_file(path), result.class_table)):
        with replacing(file) as temporary:
            pq.write_table(table.replace_schema_metadata(said), temporary)
    return class_file(path)


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
