"""Check the files of a run: skipped files with their reasons (left_out.csv), and doubtful labels."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from justright.data import ImageSet, Pool
from justright.data.audit import ALIKE, Side, are_different, location
from justright.data.columns import look_alikes
from justright.data.decoding import HEIF_EXTRA
from justright.data.folder import is_image_name, unrecognized, why_unrecognized
from justright.data.pool import OWN, Origin
from justright.data.quarantine import printable
from justright.features.table import FeatureTable
from justright.utils.errors import BadKind, DataError
from justright.utils.files import replacing

LEFT_OUT = "left_out.csv"
COPY, NOT_RECOGNISED, NO_HEIF = "copy", "not_recognised", BadKind.NO_HEIF.code
N_SHOWN = 3
GROUPS = {  # reasons in the order of the summary; all others count as unreadable
    "unreadable": "unreadable",
    NO_HEIF: f"in HEIF, which needs {HEIF_EXTRA}",
    NOT_RECOGNISED: "not recognized by name",
    COPY: "labeled and also in the target",
}


class LeftOut(NamedTuple):
    """One skipped file. `reason` is a code, `detail` an explanation."""

    path: str
    side: Side
    reason: str
    detail: str


def left_out_by_name(labeled: Sequence[str], pool: Sequence[str], target: Sequence[str]) -> list[LeftOut]:
    """Files of all sources that are skipped because of their names; a source without a place is an empty string."""
    files = []
    sides: dict[Side, Sequence[str]] = {"labeled": labeled, "pool": pool, "target": target}
    for side, sources in sides.items():
        for source in filter(None, sources):
            for name in unrecognized(source):
                path = location(f"folder:{Path(source).absolute()}", name)
                reason = NO_HEIF if is_image_name(name) else NOT_RECOGNISED
                files.append(LeftOut(path, side, reason, why_unrecognized(name)))
    return files


def unreadable_files(images: ImageSet, table: FeatureTable, is_target: bool) -> list[LeftOut]:
    """Images that could not be read during extraction."""
    places = list(_places(images)) if table.bad_rows else []
    return [
        LeftOut(location(*places[row][1:]), _side(places[row][0], is_target), bad.kind.code, bad.reason)
        for row, bad in sorted(table.bad_rows.items())
    ]


def copies_left_out(before: ImageSet, after: ImageSet) -> list[LeftOut]:
    """Labeled images that were removed because the target has the same image: those only in `before`."""
    if len(after) == len(before):
        return []
    removed = (Counter(_places(before)) - Counter(_places(after))).elements()
    detail = "the target has the same image, byte for byte"
    return [LeftOut(location(source, path), _side(dataset), COPY, detail) for dataset, source, path in removed]


def _places(images: ImageSet) -> Iterator[tuple[str, str, str]]:
    return zip(*(images.table[name].to_pylist() for name in ("dataset", "source", "path")), strict=True)


def _side(dataset: str, is_target: bool = False) -> Side:
    return "target" if is_target else "labeled" if dataset == OWN else "pool"


def summary(files: Sequence[LeftOut]) -> str:
    """The number of skipped files with reasons and the first names; "" if there are none."""
    if not files:
        return ""
    parts = []
    for group, words in GROUPS.items():
        members = [each for each in files if (each.reason if each.reason in GROUPS else "unreadable") == group]
        if members:
            names = [printable(Path(each.path).name) for each in members[:N_SHOWN]]
            more = ", ..." if len(members) > N_SHOWN else ""
            parts.append(f"{len(members):,} {words} ({', '.join(names)}{more})")
    n = len(files)
    return f"{n:,} file{' was' if n == 1 else 's were'} skipped: {'; '.join(parts)}"


def write_left_out(folder: Path, files: Sequence[LeftOut]) -> None:
    """Write left_out.csv with the columns path, side, reason and detail."""
    # file names need not be UTF-8
    text = {"encoding": "utf-8", "errors": "backslashreplace", "newline": ""}
    with replacing(folder / LEFT_OUT) as temporary, temporary.open("w", **text) as file:  # type: ignore[call-overload]
        csv.writer(file).writerows([LeftOut._fields, *files])


def read_left_out(file: Path) -> list[LeftOut]:
    """Read left_out.csv."""
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            names, *rows = csv.reader(lines, strict=True)
        if tuple(names) != LeftOut._fields:
            raise ValueError(f"the columns {', '.join(names)}")
        return [LeftOut(*row) for row in rows]  # type: ignore[arg-type]
    except (OSError, ValueError, TypeError, csv.Error) as error:
        raise DataError(
            f"{file} cannot be read: {error}", expected=f"CSV with the columns {', '.join(LeftOut._fields)}"
        ) from error


def label_warnings(pool: Pool, target_classes: Iterable[str] = ()) -> list[str]:
    """Warnings about similar class names and about images with several classes, without the final period.

    target_classes: names of the true classes of the target, if it has labels for evaluation. A labeled class with a
        similar name is probably the same class.
    """
    return [warning for warning in (_similar_names(pool, target_classes), _conflicts(pool)) if warning]


def _similar_names(pool: Pool, target_classes: Iterable[str]) -> str:
    names: dict[str, set[str]] = defaultdict(set)
    for origin in pool.origins:
        names[origin.dataset].add(origin.class_name)
    names[OWN] |= set(target_classes)
    groups = [group for classes in names.values() for group in look_alikes(classes)]
    if not groups:
        return ""
    shown = "; ".join(" and ".join(map(repr, group)) for group in groups[:N_SHOWN])
    more = f" and {len(groups) - N_SHOWN:,} more" if len(groups) > N_SHOWN else ""
    return f"names of different classes {ALIKE}: {shown}{more}"


def _conflicts(pool: Pool) -> str:
    """Identical images with several classes: compared by label within a data set, by name between data sets."""
    images = pool.images
    table = pa.table({"content": images.content_column(is_strict=False), "label": images.table["label"]})
    n_labels = table.group_by("content").aggregate([("label", "count_distinct")])
    several = n_labels.filter(pc.greater(n_labels["label_count_distinct"], 1))["content"]
    first_row: dict[str, dict[Origin, int]] = defaultdict(dict)  # by content and class
    for row in np.flatnonzero(pc.is_in(table["content"], value_set=several)).tolist():
        first_row[table["content"][row].as_py()].setdefault(pool.origins[images.labels[row]], row)
    first_row.pop("", None)  # unreadable
    groups = [rows for rows in first_row.values() if are_different(rows.keys())]
    if not groups:
        return ""
    columns = images.table["source"], images.table["path"]
    named = sorted((origin.name, [column[row].as_py() for column in columns]) for origin, row in groups[0].items())
    shown = " and ".join(f"{printable(location(*place))} ({name!r})" for name, place in named)
    which = "1 labeled image has" if len(groups) == 1 else f"{len(groups):,} labeled images have"
    return f"{which} several classes, such as {shown}; `justright audit` lists all"
