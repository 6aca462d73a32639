"""Stanford Cars: 196 makes, models and years, from the devkit or from class folders."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from justright.data.catalog import DataSet, layouts
from justright.data.image_set import ImageSet
from justright.utils.errors import DataError

TREES = ("", "car_data", "car_data/car_data")  # where class folders are; the usual archive nests them twice
NAME_FILES = ("devkit/cars_meta.mat", "cars_meta.mat", "names.csv")  # any of these gives the order of the classes
# the labels of the test images are a separate file, usually in the devkit or beside it
DEVKIT_TEST = ("devkit/cars_test_annos_withlabels.mat", "cars_test_annos_withlabels.mat")


def load(root: Path) -> ImageSet:
    """Labels are positions in `cars_meta.mat`, as in SSB, which are not alphabetical.

    Devkit: rows in the order of the annotations, train before test. Class folders: rows sorted by folder, then file.
    """
    names = _class_names(root)
    tree = next((root / tree for tree in TREES if (root / tree / "train").is_dir()), None)
    if tree is not None:
        label_of = {_key(name): label for label, name in enumerate(names)}
        train, test = (_foldered(tree, part, label_of) for part in ("train", "test"))
        return layouts.train_then_test(tree, "cars", [train], [test], names)
    train = _annotated(root, "cars_train", root / "devkit/cars_train_annos.mat", len(names))
    test = _annotated(root, "cars_test", layouts.first_present(root, *DEVKIT_TEST), len(names))
    return layouts.train_then_test(root, "cars", [train], [test], names)


def _annotated(root: Path, part: str, file: Path, n_classes: int) -> layouts.LabeledPaths:
    (rows,) = layouts.read_mat(file, "annotations")
    if not {"class", "fname"} <= set(rows.dtype.names or ()):
        raise DataError(
            f"{file}: the annotations have the fields {rows.dtype.names}",
            expected="class and fname among them; the test annotations with labels are a separate file",
        )
    numbers = layouts.whole_numbers(rows["class"], 1, n_classes, lambda row: f"{file}, annotation {row + 1}")
    files = [str(name) for name in rows["fname"]]
    layouts.check_present(root / part, files)
    return [f"{part}/{name}" for name in files], numbers - 1


def _foldered(base: Path, part: str, label_of: dict[str, int]) -> layouts.LabeledPaths:
    folders = layouts.class_folders(base / part)
    for folder in folders:
        if _key(folder) not in label_of:
            raise DataError(
                f"{base / part / folder} is not a class", expected=f"one of the {len(label_of)} class names"
            )
    paths, positions = layouts.images_in(base, part, folders)
    return paths, np.array([label_of[_key(folder)] for folder in folders])[positions]


def _class_names(root: Path) -> list[str]:
    # this file is required: sorted folders would give other labels
    file = layouts.first_present(root, *NAME_FILES)
    if file.suffix == ".mat":
        names = [str(name) for name in layouts.read_mat(file, "class_names")[0]]
    else:
        names = [line.strip().strip('"') for line in layouts.read_lines(file)]
    if len({_key(name) for name in names}) != len(names):
        raise DataError(f"{file} names a class twice", expected="each class once")
    return names


def _key(name: str) -> str:
    """A key that folder and class agree on: `Ram C/V` cannot be a folder and became `Ram C-V` or `Ram C_V`."""
    return re.sub(r"[^a-z0-9.]", "", name.casefold())


DATA_SET = DataSet(
    title="Stanford Cars",
    loader=load,
    licence="research use; images under terms like ImageNet's, see the site",
    where="https://ai.stanford.edu/~jkrause/cars/car_dataset.html "
    "(class folders: https://www.kaggle.com/datasets/jutrera/stanford-car-dataset-by-classes-folder)",
    layout="""\
    devkit/cars_meta.mat
    devkit/cars_train_annos.mat
    devkit/cars_test_annos_withlabels.mat (or beside devkit)
    cars_train/*.jpg
    cars_test/*.jpg
  or
    names.csv (or cars_meta.mat: it gives the order of the classes)
    car_data/car_data/ (or car_data/, or nothing in between)
      train/AM General Hummer SUV 2000/*.jpg
      test/AM General Hummer SUV 2000/*.jpg""",
)
