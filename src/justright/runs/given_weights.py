"""Weights that come from a file: what `justright select --out` or a person wrote.

A row weighs an image, where the file has a column id, or else a class. Columns: class_name, weight; also id, dataset,
reason. Classes are named as a run names them, `cat` for one of --labeled and `pets/cat` for one of --pool; `cat` will
do for the latter too where no other class is called so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float

from justright.data import Pool
from justright.data.columns import nfc, text_column
from justright.data.manifest import read_table
from justright.data.pool import OWN, Origin
from justright.runs.feature_pool import FeaturePool
from justright.selection import ClassWeights, Selector
from justright.selection.class_weights import ImageWeights
from justright.utils.errors import DataError
from justright.utils.types import Array

GIVEN = "given"  # what stands in the place of a selector's name
ROWS = "a table with the columns class_name and weight, a row a class; with a column id too, a row an image"
N_SHOWN = 3


@dataclass(frozen=True)
class GivenWeights:
    """One entry a labeled image, in the order of the pool.

    `is_named` says whether the file weighs it: those of the target's own classes may be left out, and weigh 1.
    """

    weight: Float[Array, " images"]
    reason: list[str]
    is_named: Bool[Array, " images"]

    @classmethod
    def read(cls, file: Path, pool: Pool) -> GivenWeights:
        """The weights of the images of a pool; a file that does not fit it is refused."""
        rows = _rows(file, pool.origins)
        images = pool.images.with_ids(is_strict=False)
        by_id = any(key[0] is not None for key in rows)
        ids: Sequence[str | None] = images.table["id"].to_pylist() if by_id else [None] * len(images)
        found = [rows.get(key) for key in zip(ids, images.labels.tolist(), strict=True)]
        is_named = np.array([each is not None for each in found], dtype=bool)
        own = [label for label, origin in enumerate(pool.origins) if origin.dataset == OWN]
        may_lack = np.isin(images.labels, sorted(set(own) - set(images.labels[is_named].tolist())))
        lacking = np.flatnonzero(~is_named & ~may_lack)
        if len(lacking):
            names = [f"{images.paths[row]} of {pool.origins[images.labels[row]].name}" for row in lacking[:N_SHOWN]]
            raise DataError(
                f"{file} does not weigh {len(lacking):,} of the {len(images):,} labeled images, such as {names[0]}",
                expected="a weight for every image of --pool, and for all images of a class or none of --labeled",
                advice="extract the images as they are now and select again, or give a row a class, without ids",
            )
        weight = np.array([each[0] if each else 1.0 for each in found])
        if not weight.any():
            raise DataError(f"all weights in {file} are 0", expected="something to learn from")
        return cls(weight, [each[1] if each else "kept: not in the file of weights" for each in found], is_named)

    def selector(self, pool: FeaturePool) -> Selector:
        """What stands in the place of a selector that was fitted to these features, the last ones of the pool."""
        start = len(self.weight) - len(pool)
        weight, reason, labels = self.weight[start:], self.reason[start:], pool.labels
        classes, first, n_images = np.unique(labels, return_index=True, return_counts=True)
        mean = np.bincount(labels, weight) / n_images
        images = None if np.array_equal(weight, weight[first][labels]) else ImageWeights(labels, weight, reason)
        given = ClassWeights(classes, mean, [reason[row] for row in first], images=images)
        return _AsGiven(given).fit_stream([], [])


def expect_fit(file: Path, pool: Pool) -> None:
    """Refuse a file that cannot be of this pool, before any image has been read: by its columns and classes."""
    named = {label for _, label in _rows(file, pool.origins)}
    others = {label for label in set(pool.images.labels.tolist()) if pool.origins[label].dataset != OWN}
    if lacking := sorted(others - named):
        names = ", ".join(pool.origins[label].name for label in lacking[:N_SHOWN])
        raise DataError(f"{file} does not weigh {len(lacking):,} classes of --pool: {names}", expected=ROWS)


class _AsGiven(Selector):
    def __init__(self, given: ClassWeights):
        self.given = given

    def _weigh(self, pool: Any, target: Any) -> ClassWeights:
        return self.given


def _rows(file: Path, origins: Sequence[Origin]) -> Mapping[tuple[str | None, int], tuple[float, str]]:
    """Weight and reason by id, None in a file of classes, and label."""
    table = _table(file)
    labels = _labels(file, table, origins)
    n = table.num_rows
    ids, reasons = (_texts(file, table, name) or [None] * n for name in ("id", "reason"))
    found: dict[tuple[str | None, int], tuple[float, str]] = {}
    for key, weight, reason in zip(zip(ids, labels, strict=True), _weights(file, table), reasons, strict=True):
        if found.setdefault(key, (weight, reason or f"given: {file.name}"))[0] != weight:
            raise DataError(f"{file} gives {origins[key[1]].name} {key[0] or ''} two weights", expected=ROWS)
    return found


def _table(file: Path) -> pa.Table:
    try:
        table = read_table(file)
    except DataError as error:
        raise DataError(error.problem, expected=ROWS) from error
    if missing := {"class_name", "weight"} - set(table.column_names):
        raise DataError(f"{file} has no column {min(missing)}", expected=ROWS, advice="justright select --out")
    return table


def _texts(file: Path, table: pa.Table, name: str) -> list[str | None]:
    return text_column(table, name, str(file)).to_pylist() if name in table.column_names else []


def _weights(file: Path, table: pa.Table) -> list[float]:
    try:
        weight = text_column(table, "weight", str(file)).cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid as error:
        raise DataError(f"{file}: {error}", expected="numbers in the column weight") from error
    if not (weight >= 0).all() or np.isinf(weight).any():
        row = int(np.flatnonzero(~(weight >= 0) | np.isinf(weight))[0])
        raise DataError(f"{file}: weight {weight[row]} in row {row + 2}", expected="0 or more in every row")
    return list(weight.tolist())


def _labels(file: Path, table: pa.Table, origins: Sequence[Origin]) -> list[int]:
    """The class of each row, by its full name, by its plain one if no other has it, or as one of the target's own."""
    n_plain = Counter(origin.class_name for origin in origins)
    known = {origin.class_name: label for label, origin in enumerate(origins) if n_plain[origin.class_name] == 1}
    known |= {origin.name: label for label, origin in enumerate(origins)}
    own = {origin.class_name: label for label, origin in enumerate(origins) if origin.dataset == OWN}
    names, datasets = ([each and nfc(each) for each in _texts(file, table, name)] for name in ("class_name", "dataset"))
    datasets = datasets or [None] * len(names)
    # the name of the data set that --labeled was when it was extracted is not known here
    found = [
        known.get(name or "", own.get((name or "").removeprefix(f"{dataset}/")))
        for name, dataset in zip(names, datasets, strict=True)
    ]
    strange = sorted({str(name) for name, label in zip(names, found, strict=True) if label is None})
    if strange or not names:
        raise DataError(
            f"{file} weighs {len(strange):,} classes that this run does not have: {', '.join(strange[:N_SHOWN])}",
            expected=f"its classes, such as {', '.join(origin.name for origin in origins[-N_SHOWN:])}",
            advice="the --labeled and --pool that the weights are for, or select again",
        )
    return [label for label in found if label is not None]
