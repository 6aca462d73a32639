"""The class splits that published results use, by data set: nobody has to find a file for them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import numpy as np

from justright.data.class_split import SSB_NAMES, UNGRADED, ClassSplit, first_half, graded, random_half
from justright.data.image_set import ImageSet
from justright.utils.errors import DataError

N_IMAGENET = 1000  # classes of ImageNet-1k, which come first in ImageNet-1k-SSB and are the old ones
RANDOM_HALF = "a random half of the classes is old"


def published_split(images: ImageSet, name: str | None = None) -> tuple[ClassSplit, str]:
    """Old and new classes as publications have them, and that rule in words.

    SSB's for CUB, Cars and Aircraft, the first half for ImageNet-100, ImageNet-1k for ImageNet-1k-SSB, else a random
    half by numpy's legacy generator with seed 0, which is what Herbarium-19 uses and what the others are given here.
    A set that only has the name of a published one, and other classes, is one of the others.

    Parameters:
        name: of the data set as the catalog has it; what the images say if not given.
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
    """The classes of a difficulty group as old ones, and the old ones as new (Tab. 1).

    Difficulty grades new classes, yet Tab. 1 trains on graded ones; docs/decisions.md says how that was read. Where
    nobody has graded them, the super-categories of the images do, in thirds.
    """
    if group not in SSB_NAMES:
        raise DataError(f"no difficulty group {group!r}", expected=f"one of {', '.join(SSB_NAMES)}")
    if group not in split.groups and any(images.hierarchy.values()):
        split = graded(split, images.hierarchy)
        if sum(map(bool, split.groups.values())) == len(SSB_NAMES) - 1:  # a coarse hierarchy: thirds, ties as they come
            thirds = np.array_split(split.new, len(SSB_NAMES))
            groups = {name: tuple(third.tolist()) for name, third in zip(SSB_NAMES, thirds, strict=True)}
            split = ClassSplit(split.old, groups)
    if not split.groups.get(group):
        raise DataError(
            f"no class of {images!r} is called {group}",
            expected="graded classes, or images with super-categories that grade them",
            advice="another group, or a data set that SSB grades: cub, cars, aircraft",
        )
    return ClassSplit(tuple(split.groups[group]), {UNGRADED: split.old})


@cache
def _ssb() -> Mapping[str, ClassSplit]:
    text = files(__package__).joinpath("published_splits.toml").read_text(encoding="utf-8")
    found = {name: {group: _labels(said) for group, said in each.items()} for name, each in tomllib.loads(text).items()}
    return {name: ClassSplit(each.pop("old"), each) for name, each in found.items()}


def _labels(said: str) -> tuple[int, ...]:
    """Numbers and ranges of numbers, such as "3 5-7"."""
    ends = [tuple(map(int, part.split("-"))) for part in said.split()]
    return tuple(label for end in ends for label in range(end[0], end[-1] + 1))
