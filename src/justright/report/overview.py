"""Pool and target at a glance: how many images of what, and a handful of each to look at."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int

from justright.data import ImageSet
from justright.report.names import named, short
from justright.report.page_images import PageImages, SheetOrder
from justright.report.page_shell import note, table
from justright.report.reading import Missing, attempt
from justright.runs.problem import OWN
from justright.runs.run_folder import RunFolder
from justright.seeding import generator
from justright.types import Array

N_IMAGES, PIXELS, COLUMNS = 16, 64, 8
MOST_SETS = 12
"""Data sets that get a sheet; more are only counted."""

BUDGET = 600_000


def overview(run: RunFolder, seed: int = 0) -> str:
    """A row a data set, and a sheet each."""
    rows: list[tuple[object, ...]] = []
    sheets: list[str] = []
    remarks: list[str] = []
    for part, images in (
        ("target, unlabeled", attempt(lambda: run.target, "The list of target images cannot be read")),
        ("pool, labeled", attempt(lambda: run.pool, "The list of labeled images cannot be read")),
    ):
        if isinstance(images, Missing):
            remarks.append(f"{images.reason}.")
            continue
        thumbs = PageImages(images, BUDGET // 2)
        for number, (dataset, where) in enumerate(_by_dataset(images)):
            labels = np.unique(images.labels[where])
            side = "own classes, labeled" if part.startswith("pool") and dataset == OWN else part
            rows.append((side, named(dataset), len(where), int((labels >= 0).sum()) or None))
            if number < MOST_SETS:
                sheets.append(_sheet(f"{side}: ", dataset, where, thumbs, seed))
        remarks += thumbs.remarks()
    said = "".join(map(note, remarks))
    return f"{table(('part', 'data set', 'images', 'classes'), rows)}\n<div class=sheets>{''.join(sheets)}</div>{said}"


def _sheet(side: str, dataset: str, where: Int[Array, " rows"], thumbs: PageImages, seed: int) -> str:
    drawn = where[np.sort(generator(seed, "overview", side, dataset).permutation(len(where))[:N_IMAGES])]
    picture = thumbs.sheet(SheetOrder(drawn, PIXELS, COLUMNS, f"images of {short(dataset)}, drawn at random"))
    if not picture:
        return ""
    return f"<figure class=sheet>{picture}<figcaption>{side}{named(dataset)}</figcaption></figure>"


def _by_dataset(images: ImageSet) -> list[tuple[str, Int[Array, " rows"]]]:
    column = pc.fill_null(images.table["dataset"].cast(pa.string()), "").combine_chunks().dictionary_encode()
    numbers = column.indices.to_numpy()
    return [(name, np.flatnonzero(numbers == number)) for number, name in enumerate(column.dictionary.to_pylist())]
