"""Check the files of a run: skipped files with their reasons (left_out.csv), and doubtful labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from justright.data import ImageSet, Pool
from justright.data.audit import ALIKE, comparable_name, location
from justright.data.columns import look_alikes, write_csv
from justright.data.decoding import HEIF_EXTRA
from justright.data.folder import is_image_name, unrecognized, why_unrecognized
from justright.data.pool import OWN, Origin
from justright.data.quarantine import printable
from justright.features.table import FeatureTable
from justright.utils.errors import BadKind, DataError
from justright.utils.files import replacing

Side = Literal["labeled", "pool", "target"]
NAME = "left_out.csv"
COPY, NOT_RECOGNISED, NO_HEIF = "copy", "not_recognised", BadKind.NO_HEIF.code
N_SHOWN = 3
GROUPS = {  # reasons in the order of the summary; all others count as unreadable
    "unreadable": "unreadable",
    NO_HEIF: f"in HEIF, which needs {HEIF_EXTRA}",
    NOT_RECOGNISED: "not recognized by name",
    COPY: "labeled and also in the target",
}


@dataclass(frozen=True)
class LeftOut:
    """One skipped file. `reason` is a code, `detail` an explanation."""

    path: str
    side: Side
    reason: str
    detail: str

    @property
    def group(self) -> str:
        """The key of the reason in GROUPS."""
        return self.reason if self.reason in GROUPS else "unreadable"


def left_out_by_name(labeled: Sequence[str], pool: Sequence[str], target: Sequence[str]) -> list[LeftOut]:
    """Files of all sources that are skipped because of their names."""
    sources: list[tuple[Side, Sequence[str]]] = [("labeled", labeled), ("pool", pool), ("target", target)]
    return [each for side, named in sources for source in named for each in _unrecognised_files(source, side)]


def _unrecognised_files(source: str, side: Side) -> list[LeftOut]:
    found = []
    for name in unrecognized(source):
        path = location(f"folder:{Path(source).absolute()}", name)
        found.append(LeftOut(path, side, NO_HEIF if is_image_name(name) else NOT_RECOGNISED, why_unrecognized(name)))
    return found


def unreadable_files(images: ImageSet, table: FeatureTable, is_target: bool) -> list[LeftOut]:
    """Images that could not be read during extraction."""
    columns = (images.table[name].to_pylist() for name in ("dataset", "source", "path"))
    places = list(zip(*columns, strict=True)) if table.bad_rows else []
    found = []
    for row, (kind, reason) in sorted(table.bad_rows.items()):
        dataset, source, path = places[row]
        side: Side = "target" if is_target else "labeled" if dataset == OWN else "pool"
        found.append(LeftOut(location(source, path), side, BadKind(kind).code, reason))
    return found


def copies_left_out(before: ImageSet, after: ImageSet) -> list[LeftOut]:
    """Labeled images that were removed because the target has the same image: those only in `before`."""
    if len(after) == len(before):
        return []
    names = ("dataset", "source", "path")
    kept = Counter(zip(*(after.table[name].to_pylist() for name in names), strict=True))
    found = []
    for dataset, source, path in zip(*(before.table[name].to_pylist() for name in names), strict=True):
        if kept[dataset, source, path]:
            kept[dataset, source, path] -= 1
            continue
        side: Side = "labeled" if dataset == OWN else "pool"
        found.append(LeftOut(location(source, path), side, COPY, "the target has the same image, byte for byte"))
    return found


def counts(files: Iterable[LeftOut]) -> dict[str, int]:
    """Number of skipped files for each reason."""
    return dict(Counter(each.reason for each in files))


def summary(files: Sequence[LeftOut]) -> str:
    """The number of skipped files with reasons and the first names; "" if there are none."""
    if not files:
        return ""
    parts = []
    for group, words in GROUPS.items():
        if own := [each for each in files if each.group == group]:
            names = [printable(Path(each.path).name) for each in own[:N_SHOWN]] + ["..."] * (len(own) > N_SHOWN)
            parts.append(f"{len(own):,} {words} ({', '.join(names)})")
    n = len(files)
    return f"{n:,} file{' was' if n == 1 else 's were'} skipped: {'; '.join(parts)}"


def write_left_out(folder: Path, files: Sequence[LeftOut]) -> None:
    """Write left_out.csv with the columns path, side, reason and detail."""
    names = [each.name for each in fields(LeftOut)]
    # file names need not be UTF-8
    rows = [[text.encode(errors="backslashreplace").decode() for text in astuple(each)] for each in files]
    table = pa.table({name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(names)})
    with replacing(folder / NAME) as temporary:
        write_csv(table, temporary)


def read_left_out(file: Path) -> list[LeftOut]:
    """Read left_out.csv."""
    names = [each.name for each in fields(LeftOut)]
    try:
        as_text = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), include_columns=names)
        parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
        rows = pyarrow.csv.read_csv(file, convert_options=as_text, parse_options=parse).to_pylist()
    except (OSError, pa.ArrowException, KeyError) as error:
        raise DataError(
            f"{file} cannot be read: {error}", expected=f"CSV with the columns {', '.join(names)}"
        ) from error
    return [LeftOut(**row) for row in rows]


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
    counts = table.group_by("content").aggregate([("label", "count_distinct")])
    several = counts.filter(pc.greater(counts["label_count_distinct"], 1))["content"]
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row in np.flatnonzero(pc.is_in(table["content"], value_set=several)).tolist():
        rows_of[table["content"][row].as_py()].append(row)
    rows_of.pop("", None)  # unreadable
    groups = [rows for rows in rows_of.values() if _disagree({pool.origins[images.labels[row]] for row in rows})]
    if not groups:
        return ""
    first = {pool.origins[images.labels[row]].name: row for row in reversed(groups[0])}
    shown = " and ".join(f"{_place(pool, row)} ({name!r})" for name, row in sorted(first.items()))
    n = len(groups)
    which = "1 labeled image has" if n == 1 else f"{n:,} labeled images have"
    return f"{which} several classes, such as {shown}; `justright audit` lists all"


def _place(pool: Pool, row: int) -> str:
    source, path = (pool.images.table[name][row].as_py() for name in ("source", "path"))
    return printable(location(source, path))


def _disagree(origins: set[Origin]) -> bool:
    datasets = {origin.dataset for origin in origins}
    if len(origins) > len(datasets):
        return True
    return len({comparable_name(origin.class_name) for origin in origins} - {None}) > 1
