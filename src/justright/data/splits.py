"""Splits: old and new classes, and the GCD protocol, which makes a labeled part, a target and a sealed truth.

Class splits are saved in the JSON schema of the Semantic Shift Benchmark (SSB): `known_classes`, and `unknown_classes`
by difficulty. Selection and training receive a Split, which holds no Truth, so they cannot use the target's labels.
Only evaluation, runs, benchmark, report and the command line open a Truth; a test checks that.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from justright.data.columns import nfc
from justright.data.image_set import ImageSet
from justright.data.parquet import write_parquet
from justright.utils.errors import DataError, MissingDataError
from justright.utils.files import parsed_json, write_json
from justright.utils.settings import BELOW_1, is_whole_number
from justright.utils.types import Labels, Mask


class Truth:
    """Label of every unlabeled image and whether its class is old, in the order of `Split.unlabeled`."""

    __slots__ = ("_images", "_old_classes")

    def __init__(self, images: ImageSet, old_classes: tuple[int, ...]):
        self._images = images
        self._old_classes = old_classes

    def __len__(self) -> int:
        return len(self._images)

    def __repr__(self) -> str:
        return f"Truth({len(self):,} labels, sealed)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Truth cannot be sent to other processes; save it and evaluate from the file")

    def named_by(self, images: ImageSet) -> Truth:
        """The same labels with the ids of these images, which are the same ones in the same order."""
        return Truth(self._images.named_by(images.table["id"]), self._old_classes)

    def open_for_evaluation(self) -> tuple[Labels, Mask]:
        """True labels and the mask of old classes, both aligned with the unlabeled images."""
        labels = self._images.labels
        return labels, np.isin(labels, self._old_classes)

    def table(self) -> pa.Table:
        """One row for each image: id, path, label, class name and is_old."""
        _, is_old = self.open_for_evaluation()
        table = self._images.table.select(["id", "path", "label", "class_name"])
        return table.append_column("is_old", pa.array(is_old))

    def save(self, path: Path) -> None:
        """Write `table` as Parquet, for `justright evaluate --truth`."""
        if path.suffix != ".parquet":
            raise DataError(f"cannot write the truth to {path}", expected="a name that ends in .parquet")
        write_parquet(self.table(), path)


# the paper's name for a group of new classes, and SSB's, which is how hard they are to tell from old ones
SSB_NAMES = {"Similar": "Hard", "Medium": "Medium", "Dissimilar": "Easy"}
UNGRADED = "Ungraded"  # the group of new classes without a difficulty
SSB_LAYOUT = 'SSB\'s JSON: {"known_classes": [...], "unknown_classes": {"Easy": [...], "Medium": [...], "Hard": [...]}}'


@dataclass(frozen=True)
class ClassSplit:
    """Old classes in the order of the split, and the new ones by group, most similar group first."""

    old: tuple[int, ...]
    groups: Mapping[str, tuple[int, ...]]

    def __post_init__(self) -> None:
        if not self.old or not self.new:
            raise DataError(f"{len(self.old)} old and {len(self.new)} new classes", expected="at least one of each")
        if repeated := sorted(label for label, n in Counter([*self.old, *self.new]).items() if n > 1):
            raise DataError(f"classes {repeated[:5]} are in the split twice", expected="each class once, old or new")

    @property
    def new(self) -> tuple[int, ...]:
        """Every new class, most similar group first."""
        return tuple(label for labels in self.groups.values() for label in labels)

    def save(self, path: Path) -> None:
        """Write the split in SSB's schema."""
        unknown = {SSB_NAMES.get(group, group): list(labels) for group, labels in self.groups.items()}
        write_json(path, {"known_classes": list(self.old), "unknown_classes": unknown})


def read_class_split(path: Path, classes: Mapping[int, str] | None = None) -> ClassSplit:
    """Read a split in SSB's schema. Classes named by text (ImageNet's synsets) are looked up in `classes`."""
    label_of = {nfc(name): label for label, name in (classes or {}).items()}

    def labels_in(listed: Any) -> tuple[int, ...]:
        if not isinstance(listed, list):
            raise TypeError("classes are not in lists")
        return tuple(_label(class_, label_of) for class_ in listed)

    try:
        content = parsed_json(path.read_bytes())
        old, unknown = labels_in(content["known_classes"]), content["unknown_classes"]
        groups = {group: unknown[name] for group, name in SSB_NAMES.items() if name in unknown}
        groups |= {group: listed for group, listed in unknown.items() if group not in SSB_NAMES.values()}
        return ClassSplit(old, {group: labels_in(listed) for group, listed in groups.items()})
    except FileNotFoundError as error:
        raise MissingDataError(f"no such file: {path}", expected=SSB_LAYOUT) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        advice = (
            "sgvaze/SSB on GitHub has them in SSB/splits/*_ssb_splits.json; a pickle is not read: it could run code"
        )
        raise DataError(f"{path} is not a class split ({error})", expected=SSB_LAYOUT, advice=advice) from error


def _label(class_: Any, label_of: Mapping[str, int]) -> int:
    """The label of a class that a file gives as a label or as a name."""
    if isinstance(class_, str) and nfc(class_) in label_of:
        return label_of[nfc(class_)]
    if is_whole_number(class_) and class_ >= 0:
        return int(class_)
    raise ValueError(f"it names the class {class_!r}, which is no index and no name in `classes`")


def first_half(labels: Collection[int]) -> ClassSplit:
    """The rule of ImageNet-100: of the sorted classes the first half is old."""
    ordered = sorted(labels)
    half = len(ordered) // 2
    return ClassSplit(tuple(ordered[:half]), {UNGRADED: tuple(ordered[half:])})


def legacy_generator(seed: int) -> np.random.RandomState:
    """Numpy's legacy generator, which the published splits use; its seeds have 32 bits."""
    if not (is_whole_number(seed) and 0 <= seed < 2**32):
        raise DataError(f"a seed of {seed!r}", expected=f"a whole number from 0 to {2**32 - 1:,}")
    return np.random.RandomState(seed)


def random_half(labels: Collection[int], seed: int = 0) -> ClassSplit:
    """The rule of Herbarium-19: a random half is old, drawn by numpy's legacy generator, rounded down."""
    ordered = sorted(labels)
    drawn = legacy_generator(seed).choice(len(ordered), len(ordered) // 2, replace=False)
    old = tuple(ordered[i] for i in drawn)
    return ClassSplit(old, {UNGRADED: tuple(sorted(set(ordered) - set(old)))})


def graded(split: ClassSplit, hierarchy: Mapping[int, tuple[str, ...]]) -> ClassSplit:
    """Grade the new classes as Similar, Medium and Dissimilar, by how close they are to the old ones.

    `hierarchy` has the super-categories above each class, coarse to fine: its path. The grade is the share of a new
    class's path that the nearest old class has too: 1/2 for ("bird", "owl") beside an old ("bird", "gull").

    share(a) = max_b |common prefix of a's and b's path| / |path of a|

    Thirds by rank, most similar first. Equal shares stay together and go where their middle rank falls, so a coarse
    hierarchy may leave a group empty.
    """
    old_prefixes = {hierarchy[old][:depth] for old in split.old for depth in range(1, len(hierarchy[old]) + 1)}

    def share(label: int) -> float:
        path = hierarchy[label]
        n_common = sum(path[:depth] in old_prefixes for depth in range(1, len(path) + 1))
        return n_common / len(path) if path else 0.0

    shares = {label: share(label) for label in split.new}
    groups: dict[str, list[int]] = {name: [] for name in SSB_NAMES}
    n_before = 0
    for value in sorted(set(shares.values()), reverse=True):
        equal = [label for label in shares if shares[label] == value]
        middle = (n_before + len(equal) / 2) / len(shares)
        groups[list(SSB_NAMES)[int(3 * middle)]] += equal
        n_before += len(equal)
    return ClassSplit(split.old, {name: tuple(sorted(labels)) for name, labels in groups.items()})


@dataclass(frozen=True)
class Split:
    """The input of selection and training: labeled images, unlabeled images, and the roles of the classes."""

    labeled: ImageSet  # the images whose labels training sees
    unlabeled: ImageSet  # the target, without labels, class names and super-categories: these are in a Truth
    classes: ClassSplit | None = None  # old and new ones; None if unknown, as for a user's own photos
    guide_classes: tuple[int, ...] = ()  # they only guide learning: no target image is assigned to them
    # unlabeled images with a label from the user, by content id; they train as labeled and keep that label
    given: Mapping[str, int] = field(default_factory=dict)

    @property
    def old_classes(self) -> tuple[int, ...]:
        """Classes that the target's own labeled part has."""
        return () if self.classes is None else self.classes.old


def gcd_split(
    images: ImageSet, classes: ClassSplit | None = None, labeled_share: float = 0.5, seed: int = 0
) -> tuple[Split, Truth]:
    """Split a data set by the GCD protocol.

    Without `classes` old and new ones are those of publications, or a random half, see `published_split`.

    Labeled are int(share * n) of the n images of old classes, drawn from all of them together (not per class) by
    numpy's legacy generator; all other images are unlabeled. With the official train images in their official order
    and seed 0 this is the split of the published results. Both parts keep the order of `images`.
    """
    classes = published_split(images)[0] if classes is None else classes
    if missing := sorted(set(classes.old + classes.new) - set(images.classes)):
        problem = f"the split names {len(missing)} classes that {images!r} lacks, such as {missing[:3]}"
        raise DataError(problem, advice="check that the split belongs to this data set")
    if not (BELOW_1.allows(labeled_share) and labeled_share > 0):
        raise DataError(f"labeled_share is {labeled_share}", expected="a share between 0 and 1")
    images = images.of_classes(classes.old + classes.new)
    old_rows = np.flatnonzero(np.isin(images.labels, classes.old))
    drawn = legacy_generator(seed).choice(len(old_rows), int(labeled_share * len(old_rows)), replace=False)
    is_labeled = np.zeros(len(images), dtype=bool)
    is_labeled[old_rows[drawn]] = True
    labeled, target = images.take(np.flatnonzero(is_labeled)), images.take(np.flatnonzero(~is_labeled))
    return Split(labeled, target.without_labels(), classes), Truth(target, classes.old)


N_IMAGENET = 1000  # classes of ImageNet-1k, the first and the old ones of ImageNet-1k-SSB
RANDOM_HALF = "a random half of the classes is old"


def published_split(images: ImageSet, name: str | None = None) -> tuple[ClassSplit, str]:
    """Old and new classes as in publications, and the rule as a sentence.

    SSB's for CUB, Cars and Aircraft, the first half for ImageNet-100, ImageNet-1k for ImageNet-1k-SSB, else a random
    half by numpy's legacy generator with seed 0, as for Herbarium-19. A set that only has the name of a published one,
    and other classes, gets a random half.

    Parameters:
        name: of the data set in the catalog; by default that of the images.
    """
    name = name or "".join(images.datasets)
    known, labels = _ssb(), sorted(images.classes)
    if name in known and labels == sorted((*known[name].old, *known[name].new)):
        return known[name], "SSB's old and new classes"
    if name == "imagenet100":
        return first_half(images.classes), "the first half of the classes is old, as published"
    if name == "imagenet1k-ssb" and len(labels) > N_IMAGENET:
        return ClassSplit(tuple(labels[:N_IMAGENET]), {UNGRADED: tuple(labels[N_IMAGENET:])}), "ImageNet-1k is old"
    return random_half(images.classes), RANDOM_HALF


def exchanged(split: ClassSplit, group: str, images: ImageSet) -> ClassSplit:
    """Exchange the classes of a difficulty group with the old ones (Tab. 1).

    Difficulty grades new classes, yet Tab. 1 trains on graded ones; see docs/research/decisions.md. Classes without a
    difficulty are graded by the super-categories of the images, in thirds.
    """
    if group not in SSB_NAMES:
        raise DataError(f"no difficulty group {group!r}", expected=f"one of {', '.join(SSB_NAMES)}")
    if group not in split.groups and any(images.hierarchy.values()):
        split = graded(split, images.hierarchy)
        n_graded = sum(1 for labels in split.groups.values() if labels)
        if n_graded == len(SSB_NAMES) - 1:  # a coarse hierarchy: thirds, which separate classes of equal share
            thirds = np.array_split(split.new, len(SSB_NAMES))
            groups = {name: tuple(third.tolist()) for name, third in zip(SSB_NAMES, thirds, strict=True)}
            split = ClassSplit(split.old, groups)
    if not split.groups.get(group):
        raise DataError(
            f"{images!r} has no {group} classes",
            expected="graded classes, or images with super-categories that grade them",
            advice="another group, or a data set that SSB grades: cub, cars, aircraft",
        )
    return ClassSplit(tuple(split.groups[group]), {UNGRADED: split.old})


@cache
def _ssb() -> Mapping[str, ClassSplit]:
    text = files(__package__).joinpath("published_splits.toml").read_text(encoding="utf-8")
    splits = {
        name: {group: _labels(ranges) for group, ranges in groups.items()}
        for name, groups in tomllib.loads(text).items()
    }
    return {name: ClassSplit(groups.pop("old"), groups) for name, groups in splits.items()}


def _labels(ranges: str) -> tuple[int, ...]:
    """The labels of numbers and ranges: "3 5-7" is 3, 5, 6, 7."""
    labels: list[int] = []
    for part in ranges.split():
        first, _, last = part.partition("-")
        labels += range(int(first), int(last or first) + 1)
    return tuple(labels)
