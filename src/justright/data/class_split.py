"""Which classes are old and which are new, and how close each new class is to the old ones.

Kept in the JSON schema of the Semantic Shift Benchmark (SSB): `known_classes` and `unknown_classes` by difficulty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from justright.data.class_names import nfc
from justright.utils.errors import DataError, MissingDataError
from justright.utils.files import parsed_json, write_json
from justright.utils.settings import is_whole_number

# the paper's word for a group of new classes, and SSB's, which says how hard it is to tell them from old ones
SSB_NAMES = {"Similar": "Hard", "Medium": "Medium", "Dissimilar": "Easy"}
UNGRADED = "Ungraded"  # the group of new classes of which nobody has said how similar they are
SSB_LAYOUT = 'SSB\'s JSON: {"known_classes": [...], "unknown_classes": {"Easy": [...], "Medium": [...], "Hard": [...]}}'


@dataclass(frozen=True)
class ClassSplit:
    """Old classes in the order of the split, and the new ones by group, most similar group first."""

    old: tuple[int, ...]
    groups: Mapping[str, tuple[int, ...]]

    def __post_init__(self) -> None:
        if not self.old or not self.new:
            raise DataError(f"{len(self.old)} old and {len(self.new)} new classes", expected="at least one of each")
        if twice := sorted(label for label, n in Counter([*self.old, *self.new]).items() if n > 1):
            raise DataError(f"classes {twice[:5]} stand twice in the split", expected="each class once, old or new")

    @property
    def new(self) -> tuple[int, ...]:
        """Every new class, most similar group first."""
        return tuple(label for labels in self.groups.values() for label in labels)

    def save(self, path: Path) -> None:
        """Write the split in SSB's schema."""
        unknown = {SSB_NAMES.get(group, group): list(labels) for group, labels in self.groups.items()}
        write_json(path, {"known_classes": list(self.old), "unknown_classes": unknown})


def read_class_split(path: Path, classes: Mapping[int, str] | None = None) -> ClassSplit:
    """A split in SSB's schema. Classes named by text (ImageNet's synsets) are looked up in `classes`."""
    if not path.is_file():
        raise MissingDataError(f"no such file: {path}", expected=SSB_LAYOUT)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}", expected=SSB_LAYOUT) from error
    if path.suffix in {".pkl", ".pickle"} or data[:1] == b"\x80":
        raise DataError(
            f"{path} is a pickle, which can run code when it is read",
            expected=SSB_LAYOUT,
            advice="the repository sgvaze/SSB publishes the same class lists as JSON, in SSB/splits/*_ssb_splits.json",
        )
    try:
        content = parsed_json(data)
        known, unknown = content["known_classes"], content["unknown_classes"]
        levels = [(group, unknown[name]) for group, name in SSB_NAMES.items() if name in unknown]
        levels += [(group, labels) for group, labels in unknown.items() if group not in SSB_NAMES.values()]
        if not all(isinstance(labels, list) for labels in [known, *(labels for _, labels in levels)]):
            raise TypeError("classes are not in lists")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is not a class split ({error})", expected=SSB_LAYOUT) from error
    label_of = {nfc(name): label for label, name in (classes or {}).items()}

    def label(named: Any) -> int:
        named = nfc(named) if isinstance(named, str) else named
        if not ((is_whole_number(named) and named >= 0) or (isinstance(named, str) and named in label_of)):
            raise DataError(
                f"{path} names the class {named!r}",
                expected="class indices, or names that the data set has",
                advice="pass classes=images.classes when the split names classes by text",
            )
        return named if isinstance(named, int) else label_of[named]

    return ClassSplit(tuple(map(label, known)), {group: tuple(map(label, labels)) for group, labels in levels})


def first_half(labels: Collection[int]) -> ClassSplit:
    """The rule of ImageNet-100: of the sorted classes the first half is old."""
    ordered = sorted(labels)
    half = len(ordered) // 2
    return ClassSplit(tuple(ordered[:half]), {UNGRADED: tuple(ordered[half:])})


def legacy_generator(seed: int) -> np.random.RandomState:
    """Numpy's old generator, which the published splits were drawn by; it takes seeds of 32 bits."""
    if not (is_whole_number(seed) and 0 <= seed < 2**32):
        raise DataError(f"a seed of {seed!r}", expected=f"a whole number from 0 to {2**32 - 1:,}")
    return np.random.RandomState(seed)


def random_half(labels: Collection[int], seed: int = 0) -> ClassSplit:
    """The rule of Herbarium-19: a random half is old, drawn by numpy's legacy generator, rounded down."""
    ordered = sorted(labels)
    drawn = legacy_generator(seed).choice(len(ordered), len(ordered) // 2, replace=False)
    old = tuple(ordered[i] for i in drawn)
    return ClassSplit(old, {UNGRADED: tuple(label for label in ordered if label not in set(old))})


def graded(split: ClassSplit, hierarchy: Mapping[int, tuple[str, ...]]) -> ClassSplit:
    """The same split with its new classes as Similar, Medium and Dissimilar, by how close they are to the old ones.

    `hierarchy` has the super-categories above each class, coarse to fine: its path. What counts is the share of a new
    class's path that the nearest old class has too.

    share(a) = max_b |common prefix of a's and b's path, coarse to fine| / |path of a|

    Thirds by rank, most similar first. Equal shares stay together and go where their middle rank falls, so a coarse
    hierarchy may leave a group empty.
    """
    prefixes = {hierarchy[b][:depth] for b in split.old for depth in range(1, len(hierarchy[b]) + 1)}

    def share(label: int) -> float:
        path = hierarchy[label]
        common = sum(path[:depth] in prefixes for depth in range(1, len(path) + 1))
        return common / len(path) if path else 0.0

    shares = {label: share(label) for label in split.new}
    groups: dict[str, list[int]] = {name: [] for name in SSB_NAMES}
    n_before = 0
    for value in sorted(set(shares.values()), reverse=True):
        equal = [label for label in shares if shares[label] == value]
        middle = (n_before + len(equal) / 2) / len(shares)
        groups[list(SSB_NAMES)[int(3 * middle)]] += equal
        n_before += len(equal)
    return ClassSplit(split.old, {name: tuple(sorted(labels)) for name, labels in groups.items()})
