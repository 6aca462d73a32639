"""What an audit found: each finding with its kind, its reason and the images or classes it is about."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Literal

from justright.audit.quarantine import Quarantined, refuse_above
from justright.utils.errors import BadKind

Side = Literal["labeled", "pool", "target"]
"""Images of the target's own classes, labeled images of other kinds, unlabeled images; as `justright discover` says."""


@dataclass(frozen=True)
class Kind:
    """How a kind of finding is called on screen, and whether it must be mended."""

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
"""Problems make the command fail; remarks are good to know and may be meant so."""


def location(source: str, path: str) -> str:
    """Where a person finds an image: the file, or the archive and the name inside it."""
    kind, _, root = source.partition(":")
    return os.path.join(root, path) if kind in ("folder", "zip") else f"{source}:{path}"


@dataclass(frozen=True)
class ImagePlace:
    """One image: whose it is, where it lies and the class it is filed under."""

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
    """Something a person should know before using the data."""

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
    """One set of images that was read, and what of it is bad."""

    side: Side
    name: str
    n_images: int
    quarantined: tuple[Quarantined, ...]


@dataclass(frozen=True)
class AuditReport:
    """Everything an audit found, findings in the order of KINDS; `to_json` says it for a machine."""

    sources: tuple[AuditedSource, ...]
    findings: list[Finding]
    near: int

    @property
    def n_images(self) -> int:
        """How many images were read, good and bad."""
        return sum(source.n_images for source in self.sources)

    @property
    def quarantined(self) -> list[Quarantined]:
        """Every bad image."""
        return [image for source in self.sources for image in source.quarantined]

    @property
    def n_problems(self) -> int:
        """How many findings must be mended before the data is used."""
        return sum(finding.is_problem for finding in self.findings)

    def refuse_above(self, max_bad: float) -> None:
        """Raise TooManyBadError for the first source with a larger share of bad images."""
        for source in self.sources:
            refuse_above(max_bad, source.quarantined, source.n_images, source.name)

    def to_json(self) -> dict[str, object]:
        """The report as plain values; bad images stand under their source, the rest under findings."""
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
