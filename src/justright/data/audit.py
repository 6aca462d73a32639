"""Audit images before they are used: bad files, copies, conflicting labels, odd classes."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from justright.data.columns import look_alikes, visible
from justright.data.decoding import decode, format_against_suffix
from justright.data.duplicates import NEAR, groups_of, look_of, near_components
from justright.data.folder import unrecognized, why_unrecognized
from justright.data.image_set import ImageSet, row_ranges, sent
from justright.data.pool import Origin
from justright.data.quarantine import Quarantined, reason_of, refuse_above
from justright.data.readers import Reader
from justright.utils.context import current, track
from justright.utils.errors import BadKind
from justright.utils.hashing import hash_bytes
from justright.utils.parallel import threads
from justright.utils.types import UNLABELED
from justright.utils.wording import count_text

Side = Literal["labeled", "pool", "target"]
"""The roles in `justright discover`: labeled images of the target's own classes, of other kinds, unlabeled images."""

BAD_FILE = "bad_file"
PROBLEMS = {  # they make the command fail
    BAD_FILE: "bad file",
    "conflict_exact": "one image, two classes",
    "conflict_near": "near copies, two classes",
    "shared_exact": "copy of a target image",
    "shared_near": "near copy of a target image",
}
REMARKS = {  # they may be intended
    "given_exact": "labeled image in the target",
    "copies_exact": "copies on one side",
    "copies_near": "near copies on one side",
    "small_class": "class of one image or none",
    "alike_names": "class names that look alike",
    "shared_class": "class in several data sets",
    "wrong_suffix": "wrong file ending",
    "ignored_file": "ignored file",
}
KINDS = PROBLEMS | REMARKS


def location(source: str, path: str) -> str:
    """The file of an image, or the archive and the name inside it."""
    kind, _, root = source.partition(":")
    return os.path.join(root, path) if kind in ("folder", "zip") else f"{source}:{path}"


@dataclass(frozen=True)
class ImagePlace:
    """One image: its role, where it is, and its class."""

    side: Side
    dataset: str
    source: str
    path: str
    class_name: str | None = None


@dataclass(frozen=True)
class ClassPlace:
    """One class of one data set."""

    side: Side
    dataset: str
    class_name: str


@dataclass(frozen=True)
class Finding:
    """A problem or a remark about images or classes."""

    kind: str
    reason: str
    images: tuple[ImagePlace, ...] = ()
    classes: tuple[ClassPlace, ...] = ()

    @property
    def is_problem(self) -> bool:
        """Whether it must be fixed before the data is used."""
        return self.kind in PROBLEMS


@dataclass(frozen=True)
class AuditedSource:
    """One set of images that was read, and its bad images."""

    side: Side
    name: str
    n_images: int
    quarantined: tuple[Quarantined, ...]


@dataclass(frozen=True)
class AuditReport:
    """The result of an audit, with findings in the order of KINDS."""

    sources: tuple[AuditedSource, ...]
    findings: list[Finding]
    near: int

    @property
    def n_images(self) -> int:
        """Number of images read, good and bad."""
        return sum(source.n_images for source in self.sources)

    @property
    def quarantined(self) -> list[Quarantined]:
        """Every bad image."""
        return [image for source in self.sources for image in source.quarantined]

    @property
    def n_problems(self) -> int:
        """Number of findings that are problems."""
        return sum(finding.is_problem for finding in self.findings)

    def refuse_above(self, max_bad: float) -> None:
        """Raise TooManyBadError for the first source with a larger share of bad images."""
        for source in self.sources:
            refuse_above(max_bad, source.quarantined, source.n_images, source.name)

    def to_json(self) -> dict[str, object]:
        """The report as plain values; bad images are under their source, the rest under findings."""
        counts = Counter(finding.kind for finding in self.findings)
        bad = Counter(image.kind for image in self.quarantined)
        others = [finding for finding in self.findings if finding.kind != BAD_FILE]
        return {
            "n_images": self.n_images,
            "n_problems": self.n_problems,
            "near": self.near,
            "counts": {kind: counts[kind] for kind in KINDS},
            "bad_files": {kind.value: bad[kind] for kind in BadKind},
            "sources": [asdict(source) | {"n_bad": len(source.quarantined)} for source in self.sources],
            "findings": [asdict(finding) | {"is_problem": finding.is_problem} for finding in others],
        }


N_WORKERS = 8  # threads: reading waits for the disk, and Pillow releases the interpreter's lock while it decodes
PART_ROWS = 32  # images per task of a worker
INSPECTED = pa.schema(
    {
        "content": pa.string(),  # content id; null for a bad image
        "hash": pa.uint64(),  # perceptual hash; null for a bad or flat image, as are the shares of colors
        "red": pa.int32(),
        "green": pa.int32(),
        "blue": pa.int32(),
        "real_format": pa.string(),  # if the suffix is that of another one
        "kind": pa.string(),  # of a bad image, as is the reason
        "reason": pa.string(),
    }
)
NUMBER_BEFORE_NAME = re.compile(r"^\d+[\s._-]+(?=\D)")
ALIKE = "differ only by case or by invisible characters"
BETWEEN_WORDS = re.compile(r"[\s_-]+")


def audit(
    labeled: Sequence[ImageSet],
    target: ImageSet | None = None,
    near: int = NEAR,
    ignored: Sequence[ImagePlace] = (),
    n_workers: int = N_WORKERS,
    pool: Sequence[ImageSet] = (),
) -> AuditReport:
    """Read every image once and report bad files, copies, conflicting labels and odd classes.

    Parameters:
        labeled, target, pool: as in `justright discover`; folders of the target are no classes.
        near: the perceptual hashes of near copies differ in at most this many of 64 bits. Flat images are not
            compared, since all of them look alike.
        ignored: files that are no images by name, to be listed.
        n_workers: number of threads, unless the context has an engine.
    """
    sides: list[tuple[Side, ImageSet]] = [("labeled", images) for images in labeled]
    sides += [("pool", images) for images in pool]
    if target is not None:
        sides.append(("target", target.without_labels()))
    findings = [Finding("ignored_file", why_unrecognized(place.path), (place,)) for place in ignored]
    sources, tables = [], []
    for number, (side, images) in enumerate(sides):
        table = inspect_images(images, n_workers)
        bad = table.filter(pc.is_valid(table["kind"])).select([field.name for field in fields(Quarantined)])
        quarantined = [Quarantined(**row | {"kind": BadKind(row["kind"])}) for row in bad.to_pylist()]
        sources.append(AuditedSource(side, ", ".join(images.datasets), len(images), tuple(quarantined)))
        table = table.append_column("side", pa.repeat(side, len(table)))
        tables.append(table.append_column("number", pa.repeat(number, len(table))))  # tells sources of one side apart
    if tables:
        everything = pa.concat_tables(tables)
        findings += [*_odd_files(everything), *_copies(everything, near), *_odd_classes(everything)]
    order = list(KINDS)
    return AuditReport(tuple(sources), sorted(findings, key=lambda finding: order.index(finding.kind)), near)


def inspect_images(images: ImageSet, n_workers: int = N_WORKERS) -> pa.Table:
    """Read every file once; returns the place and class of each image, and the columns INSPECTED.

    A class without a name is named by its label; the name is null for an unlabeled image. The result does not depend
    on the number of threads or the engine.
    """
    engine, parts = current().engine or threads(n_workers), row_ranges(len(images), PART_ROWS)
    with closing(engine(partial(_inspect_part, images.readers), (sent(images, rows) for rows in parts))) as results:
        what = f"reading {', '.join(images.datasets)}, {PART_ROWS} images per step"
        tables = list(track(results, len(parts), what))
    inspected = pa.concat_tables([INSPECTED.empty_table(), *tables]).combine_chunks()
    columns = {name: images.table[name].cast(pa.string()) for name in ("dataset", "source", "path", "class_name")}
    label = images.table["label"]
    class_name = pc.coalesce(columns["class_name"], label.cast(pa.string()))
    columns["class_name"] = pc.if_else(pc.equal(label, UNLABELED), pa.scalar(None, pa.string()), class_name)
    return pa.table(columns | {"label": label} | {name: inspected[name] for name in INSPECTED.names})


def _inspect_part(readers: Mapping[str, Reader], places: pa.Table) -> pa.Table:
    rows = places.select(["source", "path"]).to_pylist()
    return pa.Table.from_pylist([_inspect(readers[row["source"]], row["path"]) for row in rows], INSPECTED)


def _inspect(reader: Reader, path: str) -> dict[str, Any]:
    data = b""
    try:
        # if id and image both come from the bytes of a file, it is read once
        if type(reader).image is Reader.image and type(reader).content is Reader.content:
            data = reader.encoded(path)
            content_id, image = hash_bytes(data), decode(data, path)
        else:
            content_id, image = reader.content_id(path), reader.image(path)
        look = look_of(image)
    except Exception as error:  # a reader may raise anything; the reason carries it
        kind, reason = reason_of(error, path)
        return {"kind": kind.value, "reason": reason}
    row: dict[str, Any] = {"content": content_id, "real_format": format_against_suffix(data, path)}
    if look is not None:
        row["hash"], row["red"], row["green"], row["blue"] = look
    return row


def comparable_name(class_name: str) -> str | None:
    """The name without case, underscores, leading number ("001.Gull"), folders above it, and invisible characters.

    None for a name that is only a number: 7 means different classes in two data sets.
    """
    leaf = class_name.rstrip("/").rpartition("/")[2]
    words = BETWEEN_WORDS.sub(" ", NUMBER_BEFORE_NAME.sub("", unicodedata.normalize("NFKC", leaf))).strip()
    return None if not words or words.isdecimal() else visible(words)


def ignored_files(source: Path, side: Side) -> list[ImagePlace]:
    """The files of a folder or zip that are no images by name, without hidden ones."""
    dataset, kind = (source.resolve().name, "folder") if source.is_dir() else (source.stem, "zip")
    return [ImagePlace(side, dataset, f"{kind}:{source.absolute()}", path) for path in unrecognized(source)]


def _odd_files(table: pa.Table) -> Iterator[Finding]:
    """Files that cannot be read, and files with the suffix of another format."""
    for row in table.filter(pc.is_valid(table["kind"])).to_pylist():
        yield Finding(BAD_FILE, row["reason"], (_place(row),))
    for row in table.filter(pc.is_valid(table["real_format"])).to_pylist():
        yield Finding("wrong_suffix", f"holds {row['real_format']}", (_place(row),))


def _copies(table: pa.Table, near: int) -> Iterator[Finding]:
    """Groups of exact and near copies across all sources."""
    good = np.flatnonzero(table["content"].is_valid())
    contents = np.asarray(table["content"].combine_chunks().dictionary_encode().indices.fill_null(-1))
    for group in groups_of(contents[good]):
        yield from _copy_findings(table.take(good[group]).to_pylist(), "exact", "same content")
    hashed = np.flatnonzero(table["hash"].is_valid())
    looks = table.select(["hash", "red", "green", "blue"]).take(hashed)
    hashes, *colors = (np.asarray(column) for column in looks.columns)
    for group in groups_of(near_components(hashes, np.stack(colors, axis=1), near)):
        if len(np.unique(contents[hashed[group]])) > 1:
            yield from _copy_findings(table.take(hashed[group]).to_pylist(), "near", "look alike")


def _copy_findings(rows: list[dict[str, Any]], kind: Literal["exact", "near"], likeness: str) -> Iterator[Finding]:
    """The findings about one group of copies: a conflict of classes, a copy on two sides, or copies on one side."""
    images, sides = tuple(map(_place, rows)), {row["side"] for row in rows}
    is_shared = "target" in sides and len(sides) > 1
    labeled = [row for row in rows if row["class_name"] is not None]
    classes = {Origin(f"{row['number']} {row['dataset']}", row["label"], row["class_name"]) for row in labeled}
    is_conflict = are_different(classes)
    if is_conflict:
        names = sorted({origin.class_name for origin in classes})
        yield Finding(f"conflict_{kind}", f"{likeness}, but filed under {', '.join(names)}", images)
    if kind == "exact" and sides == {"labeled", "target"}:  # photos copied into class folders
        reason = f"{likeness}, in {_sides_text(sides)}: `justright discover` keeps the label"
        yield Finding("given_exact", reason, images)
    elif is_shared:
        yield Finding(f"shared_{kind}", f"{likeness}, in {_sides_text(sides)}", images)
    elif not is_conflict:
        yield Finding(f"copies_{kind}", likeness, images)


def are_different(classes: Collection[Origin]) -> bool:
    """Whether these are different classes: compared by label inside a data set, by name between data sets."""
    if len(classes) > len({origin.dataset for origin in classes}):
        return True
    return len({comparable_name(origin.class_name) for origin in classes} - {None}) > 1


def _odd_classes(table: pa.Table) -> Iterator[Finding]:
    """Classes of one image or none, names that look alike, and names in several data sets."""
    keys = ["number", "dataset", "label", "side", "class_name"]
    counts = table.group_by(keys).aggregate([("content", "count"), ("path", "count")])
    same_name: dict[str, dict[tuple[int, str], ClassPlace]] = defaultdict(dict)
    in_dataset: dict[tuple[int, str], dict[str, ClassPlace]] = defaultdict(dict)
    for row in counts.sort_by([(key, "ascending") for key in keys[:3]]).to_pylist():
        class_name, dataset = row["class_name"], (row["number"], row["dataset"])
        if class_name is None:
            continue
        place = ClassPlace(row["side"], row["dataset"], class_name)
        in_dataset[dataset][class_name] = place
        n_good, n_bad = row["content_count"], row["path_count"] - row["content_count"]
        if n_good < 2:
            bad = f", {n_bad} bad" if n_bad else ""
            yield Finding("small_class", count_text(n_good, "image") + bad, classes=(place,))
        if name := comparable_name(class_name):
            same_name[name].setdefault(dataset, place)
    for classes in in_dataset.values():
        for group in look_alikes(classes):
            yield Finding("alike_names", ALIKE, classes=tuple(classes[name] for name in group))
    for name, places in same_name.items():
        if len(places) > 1:
            sides = {place.side for place in places.values()}
            where = _sides_text(sides) if len(sides) > 1 else f"{len(places)} {min(sides)} data sets"
            yield Finding("shared_class", f"{name}: in {where}", classes=tuple(places.values()))


def _sides_text(sides: Collection[str]) -> str:
    """The sides in their usual order, such as "labeled and target"."""
    return " and ".join(side for side in get_args(Side) if side in sides)


def _place(row: dict[str, Any]) -> ImagePlace:
    return ImagePlace(row["side"], row["dataset"], row["source"], row["path"], row["class_name"])
