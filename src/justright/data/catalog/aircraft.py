"""FGVC-Aircraft: 100 variants of airplanes, with family and manufacturer."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from justright.data.catalog import DataSet
from justright.data.catalog.layouts import Listing, check_present, inside, train_then_test
from justright.data.image_set import ImageSet
from justright.utils.errors import DataError

PARTS = ("trainval", "test")
LEVELS = ("family", "manufacturer")


def load(root: Path) -> ImageSet:
    """Labels are positions among the sorted variant names, as in SSB; rows in the order of the lists.

    The split "train" is the official trainval, which the GCD protocol takes; test follows it.
    """
    data = inside(root, "fgvc-aircraft-2013b") / "data"
    lists = [Listing.read(data / f"images_variant_{part}.txt") for part in PARTS]
    names = sorted({variant for part in lists for variant in part.values})
    label_of = {name: label for label, name in enumerate(names)}
    train, test = (
        ([f"{key}.jpg" for key in part.keys], np.array([label_of[variant] for variant in part.values]))
        for part in lists
    )
    check_present(data / "images", train[0] + test[0])
    groups = [group for level in LEVELS if (group := _groups(data, level, lists))]
    superclasses = [[group[name] for name in names] for group in groups]
    return train_then_test(data / "images", "aircraft", [train], [test], names, superclasses)


def _groups(data: Path, level: str, variants: list[Listing]) -> dict[str, str]:
    """The group of each variant; empty if the lists of that level are missing."""
    files = [data / f"images_{level}_{part}.txt" for part in PARTS]
    if not all(file.is_file() for file in files):
        return {}
    group_of: dict[str, str] = {}
    for images, groups in zip(variants, map(Listing.read, files), strict=True):
        for variant, row in zip(images.values, groups.rows_of(images), strict=True):
            if group_of.setdefault(variant, groups.values[row]) != groups.values[row]:
                raise DataError(
                    f"{groups.at(int(row))}: {variant} is {groups.values[row]} here and {group_of[variant]} elsewhere",
                    expected=f"one {level} per variant",
                )
    return group_of


DATA_SET = DataSet(
    title="FGVC-Aircraft",
    loader=load,
    licence="non-commercial research use",
    where="https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/",
    layout="""\
    fgvc-aircraft-2013b/
      data/
        images_variant_trainval.txt
        images_variant_test.txt
        images_family_trainval.txt, images_family_test.txt (optional)
        images_manufacturer_trainval.txt, images_manufacturer_test.txt (optional)
        images/*.jpg""",
)
