"""Files that a run does not use, and why: one list for the terminal, the report and left_out.csv."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.csv

from justright.data import ImageSet
from justright.data.audit import location
from justright.data.columns import write_csv
from justright.data.decoding import HEIF_EXTRA
from justright.data.folder import is_image_name, why_unrecognized
from justright.data.opening import unrecognized
from justright.data.pool import OWN
from justright.data.quarantine import printable
from justright.features.table import FeatureTable
from justright.utils.errors import BadKind, DataError
from justright.utils.files import replacing

Side = Literal["labeled", "pool", "target"]
NAME = "left_out.csv"
COPY, NOT_RECOGNISED, NO_HEIF = "copy", "not_recognised", BadKind.NO_HEIF.code
N_SHOWN = 3
GROUPS = {  # reasons in the order of the summary; every other reason counts as unreadable
    "unreadable": "unreadable",
    NO_HEIF: f"in HEIF, which needs {HEIF_EXTRA}",
    NOT_RECOGNISED: "not recognised by name",
    COPY: "labeled but in the target too",
}


@dataclass(frozen=True)
class LeftOut:
    """One file that is not used. `reason` is a code, `detail` says it to a person."""

    path: str
    side: Side
    reason: str
    detail: str

    @property
    def group(self) -> str:
        """The reason as GROUPS has it."""
        return self.reason if self.reason in GROUPS else "unreadable"


def left_out_by_name(labeled: Sequence[str], pool: Sequence[str], target: Sequence[str]) -> list[LeftOut]:
    """The files of all sources that are not taken for images because of their names."""
    sources: list[tuple[Side, Sequence[str]]] = [("labeled", labeled), ("pool", pool), ("target", target)]
    return [each for side, named in sources for source in named for each in _unrecognised_files(source, side)]


def _unrecognised_files(source: str, side: Side) -> list[LeftOut]:
    found = []
    for name in unrecognized(source):
        path = location(f"folder:{Path(source).absolute()}", name)
        found.append(LeftOut(path, side, NO_HEIF if is_image_name(name) else NOT_RECOGNISED, why_unrecognized(name)))
    return found


def unreadable_files(images: ImageSet, table: FeatureTable, is_target: bool) -> list[LeftOut]:
    """The images that could not be read when their features were computed."""
    columns = (images.table[name].to_pylist() for name in ("dataset", "source", "path"))
    places = list(zip(*columns, strict=True)) if table.bad_rows else []
    found = []
    for row, (kind, reason) in sorted(table.bad_rows.items()):
        dataset, source, path = places[row]
        side: Side = "target" if is_target else "labeled" if dataset == OWN else "pool"
        found.append(LeftOut(location(source, path), side, BadKind(kind).code, reason))
    return found


def copies_left_out(before: ImageSet, after: ImageSet) -> list[LeftOut]:
    """The labeled images that were left out because the target holds the same image: those in one set alone."""
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
        found.append(LeftOut(location(source, path), side, COPY, "the target holds the same image, byte for byte"))
    return found


def counts(files: Iterable[LeftOut]) -> dict[str, int]:
    """How many files were left out for each reason."""
    return dict(Counter(each.reason for each in files))


def summary(files: Sequence[LeftOut]) -> str:
    """How many files were left out and why, with the first names; "" where there are none."""
    if not files:
        return ""
    parts = []
    for group, words in GROUPS.items():
        if own := [each for each in files if each.group == group]:
            names = [printable(Path(each.path).name) for each in own[:N_SHOWN]] + ["..."] * (len(own) > N_SHOWN)
            parts.append(f"{len(own):,} {words} ({', '.join(names)})")
    n = len(files)
    return f"{n:,} file{' was' if n == 1 else 's were'} left out: {'; '.join(parts)}"


def write_left_out(folder: Path, files: Sequence[LeftOut]) -> None:
    """Write left_out.csv: path, side, reason, detail; only its header where nothing was left out."""
    names = [each.name for each in fields(LeftOut)]
    # names of files need not be UTF-8
    rows = [[text.encode(errors="backslashreplace").decode() for text in astuple(each)] for each in files]
    table = pa.table({name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(names)})
    with replacing(folder / NAME) as temporary:
        write_csv(table, temporary)


def read_left_out(file: Path) -> list[LeftOut]:
    """What left_out.csv lists."""
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
