"""Audit images before they are used: bad files, copies, conflicting labels, odd classes."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
from jaxtyping import Int

from justright.data.columns import look_alikes, visible
from justright.data.duplicates import NEAR, groups_of, near_components
from justright.data.folder import why_unrecognized
from justright.data.image_set import ImageSet
from justright.data.inspection import N_WORKERS, Inspection, inspect_images
from justright.data.opening import unrecognized
from justright.data.quarantine import Quarantined, refuse_above
from justright.utils.errors import BadKind
from justright.utils.parallel import Engine
from justright.utils.types import UNLABELED, Array

Side = Literal["labeled", "pool", "target"]
"""The roles in `justright discover`: labeled images of the target's own classes, of other kinds, unlabeled images."""


@dataclass(frozen=True)
class Kind:
    """The title of a kind of finding, and whether it must be fixed."""

    title: str
    is_problem: bool


BAD_FILE = "bad_file"
KINDS = {
    BAD_FILE: Kind("bad file", True),
    "conflict_exact": Kind("one image, two classes", True),
    "conflict_near": Kind("near copies, two classes", True),
    "shared_exact": Kind("copy of a target image", True),
    "shared_near": Kind("near copy of a target image", True),
    "given_exact": Kind("labeled image in the target", False),
    "copies_exact": Kind("copies on one side", False),
    "copies_near": Kind("near copies on one side", False),
    "small_class": Kind("class of one image or none", False),
    "alike_names": Kind("class names that look alike", False),
    "shared_class": Kind("class in several data sets", False),
    "wrong_suffix": Kind("wrong file ending", False),
    "ignored_file": Kind("ignored file", False),
}
"""Problems make the command fail; remarks may be intended."""


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
    """One thing to know before using the data."""

    kind: str
    reason: str
    images: tuple[ImagePlace, ...] = ()
    classes: tuple[ClassPlace, ...] = ()

    @property
    def is_problem(self) -> bool:
        """Whether the data should not be used as it is."""
        return KINDS[self.kind].is_problem


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
        """Number of findings that must be fixed before the data is used."""
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


NUMBER_BEFORE_NAME = re.compile(r"^\d+[\s._-]+(?=\D)")
ALIKE = "differ only by case or by invisible characters"
BETWEEN_WORDS = re.compile(r"[\s_-]+")


@dataclass(frozen=True)
class _Source:
    side: Side
    images: ImageSet
    result: Inspection

    def place(self, row: int) -> ImagePlace:
        values = self.images.table.slice(row, 1).select(["dataset", "source", "path", "class_name", "label"])
        dataset, source, path, class_name, label = (column[0].as_py() for column in values.columns)
        return ImagePlace(self.side, dataset, source, path, _name(class_name, label))


def audit(
    labeled: Sequence[ImageSet],
    target: ImageSet | None = None,
    near: int = NEAR,
    ignored: Sequence[ImagePlace] = (),
    n_workers: int = N_WORKERS,
    engine: Engine | None = None,
    pool: Sequence[ImageSet] = (),
) -> AuditReport:
    """Read every image once and report bad files, copies, conflicting labels and odd classes.

    Parameters:
        labeled, target, pool: as in `justright discover`; folders of the target are no classes.
        near: the perceptual hashes of near copies differ in at most this many of 64 bits. Flat images are not
            compared, since all of them look alike.
        ignored: files that are no images by name, to be listed.
        engine: where to run, instead of `n_workers` threads.
    """
    sides: list[tuple[Side, ImageSet]] = [("labeled", images) for images in labeled]
    sides += [("pool", images) for images in pool]
    if target is not None:
        sides.append(("target", target.without_labels()))
    sources = [_Source(side, images, inspect_images(images, n_workers, engine)) for side, images in sides]
    findings = [*_odd_files(sources), *_copies(sources, near), *_odd_classes(sources)]
    findings += [Finding("ignored_file", why_unrecognized(place.path), (place,)) for place in ignored]
    audited = [
        AuditedSource(
            source.side, ", ".join(source.images.datasets), len(source.images), tuple(source.result.bad.values())
        )
        for source in sources
    ]
    order = list(KINDS)
    return AuditReport(tuple(audited), sorted(findings, key=lambda finding: order.index(finding.kind)), near)


def comparable_name(class_name: str) -> str | None:
    """The name without case, underscores, leading number ("001.Gull"), folders above it, and invisible characters.

    None for a name that is only a number: 7 means different classes in two data sets.
    """
    leaf = class_name.rstrip("/").rpartition("/")[2]
    words = BETWEEN_WORDS.sub(" ", NUMBER_BEFORE_NAME.sub("", unicodedata.normalize("NFKC", leaf))).strip()
    return None if not words or words.isdecimal() else visible(words)


def ignored_files(source: Path, side: Side) -> list[ImagePlace]:
    """The files of a folder or zip that are no images by name, without hidden ones."""
    is_folder = source.is_dir()
    dataset, kind = source.resolve().name if is_folder else source.stem, "folder" if is_folder else "zip"
    return [ImagePlace(side, dataset, f"{kind}:{source.absolute()}", path) for path in unrecognized(source)]


def _odd_files(sources: list[_Source]) -> Iterator[Finding]:
    """Files that cannot be read, and files with the suffix of another format."""
    for source in sources:
        for row, bad in source.result.bad.items():
            yield Finding(BAD_FILE, bad.reason, (source.place(row),))
        for row, real in source.result.misnamed.items():
            yield Finding("wrong_suffix", f"holds {real}", (source.place(row),))


def _copies(sources: list[_Source], near: int) -> Iterator[Finding]:
    """Groups of exact and near copies across all sources."""
    if not sources:
        return
    contents = np.unique(np.concatenate([s.result.content_ids for s in sources]), return_inverse=True)[1].astype(int)
    good = np.flatnonzero(np.concatenate([s.result.is_good for s in sources]))
    for group in groups_of(contents[good]):
        yield from _about_group(sources, good[group], "exact", "same content")
    seen = np.flatnonzero(np.concatenate([s.result.has_look for s in sources]))
    hashes = np.concatenate([s.result.hashes for s in sources])[seen]
    colors = np.concatenate([s.result.colors for s in sources])[seen]
    for group in groups_of(near_components(hashes, colors, near)):
        if len(np.unique(contents[seen[group]])) > 1:
            yield from _about_group(sources, seen[group], "near", "look alike")


def _about_group(
    sources: list[_Source], positions: Int[Array, " members"], how: str, likeness: str
) -> Iterator[Finding]:
    starts = np.cumsum([0] + [len(source.images) for source in sources])
    owners = np.searchsorted(starts, positions, side="right") - 1
    rows = positions - starts[owners]
    places = tuple(sources[owner].place(int(row)) for owner, row in zip(owners, rows, strict=True))
    labels = [int(sources[owner].images.labels[row]) for owner, row in zip(owners, rows, strict=True)]
    sides = {place.side for place in places}
    is_shared = "target" in sides and len(sides) > 1
    is_conflict = _disagree(owners.tolist(), labels, places)
    if is_conflict:
        names = sorted({place.class_name for place in places if place.class_name is not None})
        yield Finding(f"conflict_{how}", f"{likeness}, but filed under {', '.join(names)}", places)
    if is_shared and how == "exact" and sides == {"labeled", "target"}:  # photos copied into class folders
        yield Finding("given_exact", f"{likeness}, in {_all(sides)}: `justright discover` keeps the label", places)
    elif is_shared:
        yield Finding(f"shared_{how}", f"{likeness}, in {_all(sides)}", places)
    if not (is_conflict or is_shared):
        yield Finding(f"copies_{how}", likeness, places)


def _disagree(owners: list[int], labels: list[int], places: tuple[ImagePlace, ...]) -> bool:
    """Whether copies have different classes: by label inside a data set, by name between data sets."""
    by_dataset: dict[tuple[int, str], set[int]] = defaultdict(set)
    names = set()
    for owner, label, place in zip(owners, labels, places, strict=True):
        if label != UNLABELED:
            by_dataset[owner, place.dataset].add(label)
            names.add(comparable_name(place.class_name or ""))
    if any(len(labels_here) > 1 for labels_here in by_dataset.values()):
        return True
    return len(by_dataset) > 1 and len(names - {None}) > 1


def _odd_classes(sources: list[_Source]) -> Iterator[Finding]:
    """Classes of one image or none, names that look alike, and names in several data sets."""
    same_name: dict[str, dict[tuple[int, str], ClassPlace]] = defaultdict(dict)
    for number, source in enumerate(sources):
        in_dataset: dict[str, dict[str, ClassPlace]] = defaultdict(dict)
        for place, n_good, n_images in _classes(source):
            in_dataset[place.dataset][place.class_name] = place
            if n_good < 2:
                lost = f", {n_images - n_good} bad" if n_images > n_good else ""
                yield Finding("small_class", f"{n_good} image{'' if n_good else 's'}{lost}", classes=(place,))
            if name := comparable_name(place.class_name):
                same_name[name].setdefault((number, place.dataset), place)
        for named in in_dataset.values():
            for group in look_alikes(named):
                yield Finding("alike_names", ALIKE, classes=tuple(named[name] for name in group))
    for name, places in same_name.items():
        if len(places) > 1:
            sides = {place.side for place in places.values()}
            where = _all(sides) if len(sides) > 1 else f"{len(places)} {min(sides)} data sets"
            yield Finding("shared_class", f"{name}: in {where}", classes=tuple(places.values()))


def _all(sides: Collection[Side]) -> str:
    """The sides in their usual order, such as "labeled and target"."""
    return " and ".join(side for side in get_args(Side) if side in sides)


def _classes(source: _Source) -> Iterator[tuple[ClassPlace, int, int]]:
    """Each class with the number of its good images and of all its images."""
    table = source.images.table
    named = pa.table({name: table[name].cast(pa.string()) for name in ("dataset", "class_name")})
    named = named.append_column("label", table["label"]).append_column("good", pa.array(source.result.is_good))
    counts = named.group_by(["dataset", "class_name", "label"]).aggregate([("good", "sum"), ("good", "count")])
    for row in counts.sort_by([("dataset", "ascending"), ("label", "ascending")]).to_pylist():
        if (name := _name(row["class_name"], row["label"])) is not None:
            yield ClassPlace(source.side, row["dataset"], name), row["good_sum"], row["good_count"]


def _name(class_name: str | None, label: int) -> str | None:
    return None if label == UNLABELED else str(label) if class_name is None else class_name
