"""Weights from a file: the output of `justright select --out`, or a table written by hand.

The columns are class_name and weight, one row per class; with a column id, one row per image. The columns dataset and
reason are optional. Classes have the names of the run: `cat` for a class of --labeled, `pets/cat` for one of --pool, or
just `cat` if no other class has that name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float, Int

from justright.data import Pool
from justright.data.columns import nfc, text_column
from justright.data.manifest import read_table
from justright.data.pool import OWN, Origin
from justright.selection import ClassWeights
from justright.selection.class_weights import ImageWeights
from justright.utils.errors import DataError
from justright.utils.types import Array

GIVEN = "given"  # the origin of such weights, in place of the name of a selector
EXPECTED = "a table with the columns class_name and weight, one row per class, or with id one row per image"
N_SHOWN = 3


@dataclass(frozen=True)
class GivenWeights:
    """One entry per labeled image, in the order of the pool."""

    weight: Float[Array, " images"]
    reason: list[str]
    is_named: Bool[Array, " images"]  # whether the file has its weight; classes of --labeled may be missing and weigh 1

    @classmethod
    def read(cls, file: Path, pool: Pool) -> GivenWeights:
        """Read the weights of the images of a pool, and raise if the file does not fit it."""
        rows, images = _read_rows(file, pool.origins), pool.images.with_ids(is_strict=False)
        has_ids = any(image_id is not None for image_id, _ in rows)
        ids: Sequence[str | None] = images.table["id"].to_pylist() if has_ids else [None] * len(images)
        matches = [rows.get(key) for key in zip(ids, images.labels.tolist(), strict=True)]
        is_named = np.array([match is not None for match in matches], dtype=bool)
        is_own = np.array([origin.dataset == OWN for origin in pool.origins], dtype=bool)[images.labels]
        is_optional = is_own & ~np.isin(images.labels, images.labels[is_named])
        missing = np.flatnonzero(~is_named & ~is_optional)
        if len(missing):
            first = f"{images.paths[missing[0]]} of {pool.origins[images.labels[missing[0]]].name}"
            raise DataError(
                f"{file} has no weight for {len(missing):,} of the {len(images):,} labeled images, such as {first}",
                expected="a weight for every image of --pool, and for all or no images of a class of --labeled",
                advice="extract the images again and select again, or give one row per class, without ids",
            )
        weight, reason = zip(*(match or (1.0, "kept: not in the file of weights") for match in matches), strict=True)
        if not any(weight):
            raise DataError(f"all weights in {file} are 0", expected="a weight above 0")
        return cls(np.array(weight), list(reason), is_named)

    def of_rows(self, start: int, labels: Int[Array, " rows"]) -> ClassWeights:
        """The weights of the images from row `start` on and of their classes, whose labels these are."""
        weight, reason = self.weight[start:], self.reason[start:]
        classes, first, n_images = np.unique(labels, return_index=True, return_counts=True)
        mean = np.bincount(labels, weight) / n_images
        images = ImageWeights(labels, weight, reason)
        return ClassWeights(classes, mean, [reason[row] for row in first], images=images)


def check_weights(file: Path, pool: Pool) -> None:
    """Check columns and classes of a file before any image is read."""
    named = {label for _, label in _read_rows(file, pool.origins)}
    others = {label for label in set(pool.images.labels.tolist()) if pool.origins[label].dataset != OWN}
    if missing := sorted(others - named):
        names = ", ".join(pool.origins[label].name for label in missing[:N_SHOWN])
        raise DataError(f"{file} has no weight for {len(missing):,} classes of --pool: {names}", expected=EXPECTED)


def _read_rows(file: Path, origins: Sequence[Origin]) -> Mapping[tuple[str | None, int], tuple[float, str]]:
    """Weight and reason by label and, in a table of images, image id."""
    try:
        table = read_table(file)
    except DataError as error:
        raise DataError(error.problem, expected=EXPECTED) from error
    if missing := {"class_name", "weight"} - set(table.column_names):
        raise DataError(f"{file} has no column {min(missing)}", expected=EXPECTED, advice="justright select --out")
    names, datasets, ids, reasons = (
        text_column(table, name, str(file)).to_pylist() if name in table.column_names else [None] * table.num_rows
        for name in ("class_name", "dataset", "id", "reason")
    )
    try:
        weights = text_column(table, "weight", str(file)).cast(pa.float64()).to_pylist()
    except pa.ArrowInvalid as error:
        raise DataError(f"{file}: {error}", expected="numbers in the column weight") from error
    labels = _labels(file, names, datasets, origins)
    rows: dict[tuple[str | None, int], tuple[float, str]] = {}
    for number, (image_id, label, weight, reason) in enumerate(zip(ids, labels, weights, reasons, strict=True)):
        if weight is None or not 0 <= weight < np.inf:
            raise DataError(f"{file}: weight {weight} in row {number + 2}", expected="0 or more in every row")
        if rows.setdefault((image_id, label), (weight, reason or f"given: {file.name}"))[0] != weight:
            raise DataError(f"{file} has two weights for {origins[label].name} {image_id or ''}", expected=EXPECTED)
    return rows


def _labels(
    file: Path, names: Sequence[str | None], datasets: Sequence[str | None], origins: Sequence[Origin]
) -> list[int]:
    """The label of each row, by the full name of its class, or by the short one if it is unique."""
    n_short = Counter(origin.class_name for origin in origins)
    own = {origin.class_name: label for label, origin in enumerate(origins) if origin.dataset == OWN}
    by_name = {origin.class_name: label for label, origin in enumerate(origins) if n_short[origin.class_name] == 1}
    by_name |= {origin.name: label for label, origin in enumerate(origins)}
    # a class of --labeled may have the name of the data set that it was extracted from as prefix
    classes = [(nfc(name or ""), f"{nfc(dataset or '')}/") for name, dataset in zip(names, datasets, strict=True)]
    labels = [by_name.get(name, own.get(name.removeprefix(prefix))) for name, prefix in classes]
    unknown = sorted({name for (name, _), label in zip(classes, labels, strict=True) if label is None})
    if unknown or not labels:
        raise DataError(
            f"{file} has {len(unknown):,} classes that this run does not have: {', '.join(unknown[:N_SHOWN])}",
            expected=f"its classes, such as {', '.join(origin.name for origin in origins[-N_SHOWN:])}",
            advice="use the --labeled and --pool of these weights, or select again",
        )
    return [label for label in labels if label is not None]
