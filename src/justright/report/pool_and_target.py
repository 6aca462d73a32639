"""Pool and target: how many images of what, and a handful of each to look at."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int

from justright.data.pool import OWN, dataset_title
from justright.report.elements import Missing, Name, Table, Values, attempt, short
from justright.report.page_images import PageImages, SheetOrder
from justright.runs.run_folder import RunFolder
from justright.runs.source_checks import summary
from justright.utils.seeding import generator
from justright.utils.types import Array

N_IMAGES, PIXELS, COLUMNS = 16, 64, 8
MOST_SETS = 12  # data sets that get a sheet; more are only counted
BUDGET = 600_000
MOST_LEFT_OUT = 500  # files of the table; left_out.csv lists all


def overview(run: RunFolder) -> Values:
    """A row a data set, and a sheet each."""
    rows, sheets, missing, sources = [], [], [], []
    for part, images in (
        ("target", attempt(lambda: run.target, "The list of target images cannot be read")),
        ("pool", attempt(lambda: run.pool, "The list of labeled images cannot be read")),
    ):
        if isinstance(images, Missing):
            missing.append(images)
            continue
        page_images = PageImages(images, BUDGET // 2)
        names, of_image = datasets(images.table["dataset"])
        for number, dataset in enumerate(names):
            where = np.flatnonzero(of_image == number)
            labels = np.unique(images.labels[where])
            title = dataset_title(dataset) if part == "pool" else dataset
            side = title if part == "pool" and dataset == OWN else part
            rows.append((side, Name(title), len(where), int((labels >= 0).sum()) or None))
            if number < MOST_SETS:
                drawn = generator(0, "overview", f"{side}: ", dataset).permutation(len(where))[:N_IMAGES]
                what = f"images of {short(title)}, drawn at random"
                picture = page_images.sheet(SheetOrder(where[np.sort(drawn)], PIXELS, COLUMNS, what))
                sheets += [(side, title, picture)] if picture else []
        sources.append(page_images)
    sets = Table(("part", "data set", "images", "classes"), rows)
    return {"sets": sets, "sheets": sheets, "missing": missing, "sources": sources}


def left_out_part(run: RunFolder) -> Values | Missing:
    """The files that were not used: how many and why, and each of them."""
    files = run.left_out
    if files is None:
        return Missing("The run does not say which files it left out")
    if not files:
        return Missing("No file was left out")
    rows = [(Name(each.path), each.side, each.reason.replace("_", " "), Name(each.detail)) for each in files]
    table = Table(("file", "side", "reason", "detail"), rows[:MOST_LEFT_OUT])
    return {"said": summary(files), "files": table, "n_files": len(files), "is_folded": len(files) > N_IMAGES}


def datasets(column: pa.ChunkedArray) -> tuple[list[str], Int[Array, " rows"]]:
    """The names in a column, and which of them each row has."""
    coded = pc.fill_null(column.cast(pa.string()), "").combine_chunks().dictionary_encode()
    return coded.dictionary.to_pylist(), coded.indices.to_numpy()
