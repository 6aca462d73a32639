"""CUB-200-2011: 200 species of birds."""

from __future__ import annotations

from pathlib import Path

from justright.data.catalog import DataSet
from justright.data.catalog.layouts import Listing, assemble, check_present, inside
from justright.data.image_set import ImageSet
from justright.utils.errors import DataError


def load(root: Path) -> ImageSet:
    """Labels are the official class numbers minus 1, as in SSB; rows are in the order of `images.txt`.

    The super-category is the last word of the English name (`Albatross`). The official files hold no taxonomy.
    """
    root = inside(root, "CUB_200_2011")
    files = ("classes", "images", "image_class_labels", "train_test_split")
    classes, images, labels, parts = (Listing.read(root / f"{name}.txt") for name in files)
    n_classes = len(classes.keys)
    if classes.keys != [str(number) for number in range(1, n_classes + 1)]:
        raise DataError(f"{classes.file}: classes are not numbered in order", expected=f"1 to {n_classes}")
    check_present(root / "images", images.values)
    label = labels.numbers(1, n_classes)[labels.rows_of(images)] - 1
    is_train = parts.numbers(0, 1)[parts.rows_of(images)] == 1
    groups = [name.split(".")[-1].split("_")[-1] for name in classes.values]
    return assemble(root / "images", "cub", images.values, label, is_train, classes.values, [groups])


DATA_SET = DataSet(
    title="CUB-200-2011",
    loader=load,
    licence="non-commercial research and educational use",
    where="https://www.vision.caltech.edu/datasets/cub_200_2011/",
    layout="""\
    CUB_200_2011/
      classes.txt
      images.txt
      image_class_labels.txt
      train_test_split.txt
      images/001.Black_footed_Albatross/*.jpg""",
)
