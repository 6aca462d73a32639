"""What a run says of each category: clusters.csv, and in doubts.json the images that decide each doubt."""

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

NAME = "clusters.csv"
COLUMNS = ("category", "kind", "images", "expected_purity", "doubt", "with")


def cluster_table(found: Predictions, doubts: Sequence[Doubt], has_purity: bool = True) -> pa.Table:
    """One row a category. The purity is empty where no image was predicted or confidences are not calibrated."""
    by_category = {doubt.category: doubt for doubt in doubts}
    about = [by_category.get(number) for number in range(len(found.categories))]
    names = [category.name for category in found.categories]
    purity = found.purity.round(4) if has_purity else np.full(len(names), np.nan)
    columns = (
        names,
        [category.kind for category in found.categories],
        found.sizes,
        pa.array(purity, from_pandas=True),
        pa.array([None if doubt is None else doubt.kind for doubt in about], pa.string()),
        pa.array(
            [None if doubt is None or doubt.other is None else names[doubt.other] for doubt in about], pa.string()
        ),
    )
    return pa.table(dict(zip(COLUMNS, columns, strict=True)))


def write_clusters(path: Path, found: Predictions, doubts: Sequence[Doubt], has_purity: bool = True) -> None:
    """Write clusters.csv."""
    with replacing(path) as temporary:
        write_csv(cluster_table(found, doubts, has_purity), temporary)


def doubts_json(found: Predictions, doubts: Sequence[Doubt]) -> dict[str, Any]:
    """Each doubt with names and the ids of the images that decide it."""
    names, ids = [category.name for category in found.categories], found.index["id"]
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


def doubts_from(said: dict[str, Any] | None, found: Predictions) -> list[Doubt]:
    """What `doubts_json` gave, for the same predictions; none where a run has no such file."""
    if not (said and said.get("doubts")):
        return []
    number = {category.name: place for place, category in enumerate(found.categories)}
    row = dict(zip(found.ids, range(len(found)), strict=True))
    try:
        return [
            Doubt(number[each["category"]], number.get(each["with"]), tuple(row[image] for image in each["images"]))
            for each in said["doubts"]
        ]
    except (KeyError, TypeError) as error:
        raise DataError(f"doubts.json does not fit the predictions: {error!r}") from error
