"""Herbarium-19: 683 species of melastomes as dried specimens, the small version."""

from __future__ import annotations

from pathlib import Path

from justright.data.catalog import DataSet
from justright.data.catalog.layouts import class_folders, images_in, train_then_test
from justright.data.image_set import ImageSet
from justright.utils.errors import DataError

TRAIN, TEST = "small-train", "small-validation"


def load(root: Path) -> ImageSet:
    """Labels are ImageFolder's: folders sorted as strings, so `10` comes before `2`. Validation is the split "test"."""
    folders = class_folders(root / TRAIN)
    if unknown := sorted(set(class_folders(root / TEST)) - set(folders)):
        raise DataError(f"{root / TEST / unknown[0]} is not a class of {TRAIN}", expected="the same classes in both")
    train, test = images_in(root, TRAIN, folders), images_in(root, TEST, folders)
    return train_then_test(root, "herbarium19", [train], [test], folders)


DATA_SET = DataSet(
    title="Herbarium-19",
    loader=load,
    licence="rules of the competition; see the site",
    where="https://www.kaggle.com/c/herbarium-2019-fgvc6",
    layout="""\
    small-train/0/*.jpg
    small-validation/0/*.jpg""",
)
