"""The labels that a review leaves: a table, class folders, or a labeled set for the next run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from jaxtyping import Bool

from justright.data import ImageSet
from justright.data.columns import COLUMNS, NAME
from justright.errors import DataError, DegenerateError
from justright.files import replacing
from justright.review.actions import REJECTED
from justright.review.class_folders import write_class_folders
from justright.review.open_review import OpenReview
from justright.runs.problem import OWN
from justright.types import Array

Form = Literal["csv", "parquet", "folders", "labeled"]
FORMS: tuple[Form, ...] = get_args(Form)

OF_RUN = ("id", "dataset", "path")


def label_table(opened: OpenReview) -> pa.Table:
    """One row an image: id, dataset, path, cluster, class_name, kind, status, confidence, predicted, reviewers.

    A rejected image has cluster -1, no class_name and status rejected; a cluster that reviewers disagree on is
    disputed, one that nobody judged open.
    """
    with opened.reading() as state:
        clusters, place = np.unique(state.group, return_inverse=True)
        labels = [state.labels.get(int(cluster)) for cluster in clusters]
        status = ["rejected" if c == REJECTED else state.status(int(c)) for c in clusters]
        who = [", ".join(sorted(state.opinions.get(int(c), ()))) for c in clusters]
        group = state.group.copy()
    predictions = opened.predictions
    columns = {
        "cluster": pa.array(group),
        "class_name": _spread([label.name if label else None for label in labels], place),
        "kind": _spread([label.kind if label else None for label in labels], place),
        "status": _spread(status, place),
        "confidence": pa.array(predictions.confidence.astype(np.float32)),
        "predicted": _spread([category.name for category in predictions.categories], predictions.cluster),
        "reviewers": _spread(who, place),
    }
    return pa.table({name: predictions.index[name] for name in OF_RUN} | columns)


def labeled_set(opened: OpenReview, dataset: str, *, is_all: bool = False, with_known: bool = False) -> ImageSet:
    """The reviewed images as a labeled set: clusters that were kept, equal names one class, rejected images left out.

    Classes of the target's own labeled images get their plain names back, `gull` for `target/gull`.
    `is_all` takes clusters that nobody judged as well. `with_known` adds the labeled images of the run's known
    classes, so that this set can stand in for the one it began with.
    """
    table = label_table(opened)
    rows = np.flatnonzero(_is_taken(table, is_all))
    chosen = opened.run.target.take(rows)
    names: list[str] = table["class_name"].take(pa.array(rows)).to_pylist()
    if with_known:
        pool = opened.run.pool
        known = {each.name for each in opened.predictions.categories if each.kind == "known"} | set(names)
        of_pool = pool.of_classes(label for label, name in pool.classes.items() if name in known)
        names += of_pool.table["class_name"].to_pylist()
        chosen = ImageSet.concat([_bare(chosen), _bare(of_pool)])
    if not names:
        raise DegenerateError(
            "no cluster has been kept yet, so there is nothing to export",
            advice="keep or name clusters on the page, or export all of them with --all",
        )
    # the run calls the target's own labeled classes target/...; as a labeled set again they would get that twice
    names = [name.removeprefix(f"{OWN}/") for name in names]
    classes, labels = np.unique(np.array(names, dtype=object), return_inverse=True)
    columns = {
        "label": pa.array(labels.astype(np.int32)),
        "class_name": _spread(classes.tolist(), labels),
        "dataset": _spread([dataset], np.zeros(len(names), dtype=np.int64)),
    }
    new = _bare(chosen).table
    for name, values in columns.items():
        new = new.set_column(new.schema.get_field_index(name), name, values)
    return ImageSet(new, chosen.readers)


def export(
    opened: OpenReview,
    path: Path,
    form: Form,
    *,
    is_all: bool = False,
    with_known: bool = False,
    is_copy: bool = False,
    dataset: str = "",
) -> int:
    """Write the labels to `path`, whole or not at all, and say how many images they cover."""
    if form in ("csv", "parquet"):
        table = label_table(opened)
        with replacing(path) as temporary:
            if form == "csv":
                plain = [column.cast(pa.string()) if column.type == NAME else column for column in table.columns]
                pyarrow.csv.write_csv(pa.table(plain, names=table.column_names), temporary)
            else:
                pq.write_table(table, temporary)
        return int(table.num_rows)
    images = labeled_set(
        opened, dataset or f"{opened.run.path.resolve().name}-reviewed", is_all=is_all, with_known=with_known
    )
    if form == "folders":
        write_class_folders(images, path, is_copy=is_copy)
    elif path.suffix == ".parquet":
        path.parent.mkdir(parents=True, exist_ok=True)
        images.save(path)
    else:
        raise DataError(f"cannot write a labeled set to {path}", expected="a name that ends in .parquet")
    return len(images)


def _is_taken(table: pa.Table, is_all: bool) -> Bool[Array, " images"]:
    taken = pa.array(["kept", "open"] if is_all else ["kept"])
    return pc.is_in(table["status"].cast(pa.string()), taken).to_numpy(zero_copy_only=False)


def _bare(images: ImageSet) -> ImageSet:
    return ImageSet(images.table.select(list(COLUMNS)), images.readers)


def _spread(names: Sequence[str | None], positions: Array) -> pa.Array:
    # through plain text: a null inside a dictionary cannot be written as Parquet
    return pa.array(names, pa.string()).take(pa.array(positions.astype(np.int64))).dictionary_encode().cast(NAME)
