"""Building blocks of loaders: class folders, list files, MATLAB variables, and the ImageSet made from them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Int

from justright.data.columns import names_column
from justright.data.folder import is_image_name, walk
from justright.data.image_set import ImageSet
from justright.data.readers import FolderReader
from justright.utils.errors import DataError
from justright.utils.types import Array, Labels, Mask

# paths of images and one label each; the axis has no name because two parts differ in length
LabeledPaths: TypeAlias = tuple[list[str], Int[Array, " _"]]
Parts: TypeAlias = Sequence[LabeledPaths]
Names: TypeAlias = Sequence[str]
Levels: TypeAlias = Sequence[Sequence[str | None]]  # super-categories: one sequence per level, fine to coarse


def missing(path: Path) -> FileNotFoundError:
    """The error that a loader raises for a missing file or folder, or an empty folder."""
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def inside(root: Path, name: str) -> Path:
    """The folder that the official archive unpacks to: `root` itself or inside it."""
    return root / name if (root / name).is_dir() else root


def first_present(root: Path, *names: str) -> Path:
    """The first of several usual files or folders below `root` that exists."""
    for name in names:
        if (root / name).exists():
            return root / name
    raise missing(root / names[0])


def check_present(folder: Path, paths: Iterable[str]) -> None:
    """Raise FileNotFoundError for the first path that is not below `folder`; walks it once."""
    present = set(walk(folder))
    for path in paths:
        if path not in present:
            raise missing(folder / path)


def class_folders(folder: Path) -> list[str]:
    """The folders in a folder, sorted as strings, without hidden ones."""
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    if not names:
        raise missing(folder / "*")
    return names


def images_in(root: Path, part: str, folders: Sequence[str], first_label: int = 0) -> LabeledPaths:
    """The images in folders of `root/part`, as paths below `root`; folders are labeled in the given order.

    Files are sorted by name inside each folder: ImageFolder's order if the folders are sorted.
    """
    paths: list[str] = []
    sizes: list[int] = []
    for name in folders:
        files = sorted(filter(is_image_name, walk(root / part / name)))
        if not files:
            raise missing(root / part / name / "*.jpg")
        paths.extend(f"{part}/{name}/{file}" for file in files)
        sizes.append(len(files))
    return paths, np.repeat(np.arange(first_label, first_label + len(folders)), sizes)


def read_lines(file: Path) -> list[str]:
    """The lines of a text file, without empty ones at its end."""
    try:
        return file.read_text(encoding="utf-8-sig").rstrip().split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not text: {error}", expected="UTF-8") from error


class Listing(dict[str, str]):
    """An official list file: a key, a space and a value on each line, in the order of the file."""

    def __init__(self, file: Path):
        super().__init__()
        self.file = file
        for number, line in enumerate(read_lines(file), start=1):
            pair = line.split(maxsplit=1)
            if len(pair) != 2:
                raise DataError(f"{file}, line {number}: {line!r}", expected="a key, a space and a value")
            if pair[0] in self:
                raise DataError(f"{file}, line {number}: {pair[0]} is listed twice", expected="each key once")
            self[pair[0]] = pair[1].rstrip()

    def at(self, key: str) -> str:
        """The file and line of a key, for errors."""
        return f"{self.file}, line {list(self).index(key) + 1}"

    def in_order_of(self, other: Listing) -> list[str]:
        """The values in the order of another list, which must have the same keys."""
        for here, there in ((self, other), (other, self)):
            for key in here:
                if key not in there:
                    raise DataError(f"{here.at(key)}: {key} is not in {there.file.name}", expected="the same keys")
        return [self[key] for key in other]

    def numbers(self, other: Listing, low: int, high: int) -> Labels:
        """The values as whole numbers between two bounds, in the order of another list."""
        keys = list(other)
        return whole_numbers(self.in_order_of(other), low, high, lambda row: self.at(keys[row]))


def whole_numbers(values: Iterable[Any], low: int, high: int, at: Callable[[int], str]) -> Labels:
    """Convert to integers; raises DataError for the first value outside the bounds. `at` gives its position."""
    numbers = []
    for row, value in enumerate(values):
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if not (low <= number <= high and number.is_integer()):
            raise DataError(f"{at(row)}: {value}", expected=f"a whole number from {low} to {high}")
        numbers.append(int(number))
    return np.array(numbers, dtype=np.int64)


def read_mat(file: Path, *names: str) -> list[Any]:
    """Read variables of a MATLAB file, each as an array with one axis."""
    from scipy.io import loadmat  # slow to import, and most commands read no MATLAB file

    if not file.is_file():
        raise missing(file)
    try:
        content = loadmat(file, squeeze_me=True, variable_names=names)
    except Exception as error:  # scipy raises many kinds of errors for damaged bytes
        raise DataError(f"{file} cannot be read: {error}", expected="a MATLAB file, version 5 to 7") from error
    for name in names:
        if name not in content:
            raise DataError(f"{file} has no variable {name}", expected=f"the variables {', '.join(names)}")
        if not np.size(content[name]):
            raise DataError(f"{file}: {name} is empty", expected="at least one entry")
    return [np.atleast_1d(content[name]) for name in names]


def assemble(
    root: Path, dataset: str, path: Names, label: Labels, is_train: Mask, class_names: Names, superclasses: Levels = ()
) -> ImageSet:
    """Make an ImageSet from columns with one entry per image, and names with one entry per class."""
    return ImageSet.of(
        FolderReader(root.absolute()),
        dataset=dataset,
        path=path,
        label=label,
        split=names_column(["test", "train"], is_train.astype(np.int32)),
        class_name=names_column(class_names, label),
        superclasses=[names_column(level, label) for level in superclasses],
    )


def train_then_test(
    root: Path, dataset: str, train: Parts, test: Parts, class_names: Names, superclasses: Levels = ()
) -> ImageSet:
    """Make an ImageSet from train and test parts, one after the other."""
    parts = [*train, *test]
    paths = [path for paths, _ in parts for path in paths]
    labels = np.concatenate([labels for _, labels in parts])
    is_train = np.arange(len(paths)) < sum(len(paths) for paths, _ in train)
    return assemble(root, dataset, paths, labels, is_train, class_names, superclasses)
