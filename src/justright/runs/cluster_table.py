"""The table of categories, clusters.csv, and the images behind each doubt, doubts.json."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from justright.data.columns import write_csv
from justright.discovery.doubts import Doubt
from justright.discovery.predictions import Predictions
from justright.utils.errors import DataError
from justright.utils.files import replacing

CLUSTERS = "clusters.csv"
COLUMNS = ("category", "kind", "images", "expected_purity", "doubt", "with")


def cluster_table(predictions: Predictions, doubts: Sequence[Doubt], has_purity: bool = True) -> pa.Table:
    """One row per category. The purity is empty without predicted images or calibrated confidences."""
    names = [category.name for category in predictions.categories]
    doubt_of, other_of = dict[int, str](), dict[int, str]()
    for doubt in doubts:
        doubt_of[doubt.category] = doubt.kind
        if doubt.other is not None:
            other_of[doubt.category] = names[doubt.other]
    columns = (
        names,
        [category.kind for category in predictions.categories],
        predictions.sizes,
        pa.array(predictions.purity.round(4) if has_purity else np.full(len(names), np.nan), from_pandas=True),
        pa.array(map(doubt_of.get, range(len(names))), pa.string()),
        pa.array(map(other_of.get, range(len(names))), pa.string()),
    )
    return pa.table(dict(zip(COLUMNS, columns, strict=True)))


def write_clusters(path: Path, predictions: Predictions, doubts: Sequence[Doubt], has_purity: bool = True) -> None:
    """Write clusters.csv."""
    with replacing(path) as temporary:
        write_csv(cluster_table(predictions, doubts, has_purity), temporary)


def doubts_json(predictions: Predictions, doubts: Sequence[Doubt]) -> dict[str, Any]:
    """Each doubt with names and the ids of the images behind it."""
    names, ids = [category.name for category in predictions.categories], predictions.index["id"]
    return {
        "doubts": [
            {
                "category": names[doubt.category],
                "doubt": doubt.kind,
                "with": None if doubt.other is None else names[doubt.other],
                "images": ids.take(pa.array(doubt.rows, pa.int64())).to_pylist(),
            }
            for doubt in doubts
        ]
    }


def doubts_from(saved: dict[str, Any] | None, predictions: Predictions) -> list[Doubt]:
    """Read the result of `doubts_json` for the same predictions; empty without one."""
    if not (saved and saved.get("doubts")):
        return []
    number = {category.name: place for place, category in enumerate(predictions.categories)}
    row = dict(zip(predictions.ids, range(len(predictions)), strict=True))
    try:
        return [
            Doubt(number[each["category"]], number.get(each["with"]), tuple(row[image] for image in each["images"]))
            for each in saved["doubts"]
        ]
    except (KeyError, TypeError) as error:
        raise DataError(f"doubts.json does not fit the predictions: {error!r}") from error
