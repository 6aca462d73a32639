"""Building blocks of loaders: class folders, list files, MATLAB variables, and the ImageSet made from them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
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


def read_list(file: Path) -> dict[str, str]:
    """An official list file: a key, a space and a value on each line, in the order of the file."""
    pairs = [line.split(maxsplit=1) for line in file.read_text(encoding="utf-8-sig").rstrip().split("\n")]
    if not all(len(pair) == 2 for pair in pairs):
        raise DataError(f"{file} is damaged", expected="a key, a space and a value on each line")
    return {key: value.rstrip() for key, value in pairs}


def read_mat(file: Path, *names: str) -> list[Any]:
    """Read variables of a MATLAB file, each as an array with one axis."""
    from scipy.io import loadmat  # slow to import, and most commands read no MATLAB file

    with file.open("rb") as opened:
        try:
            content = loadmat(opened, squeeze_me=True, variable_names=names)  # type: ignore[arg-type]  # it takes files
            return [np.atleast_1d(content[name]) for name in names]
        except Exception as error:  # scipy raises many kinds of errors for damaged bytes
            raise DataError(
                f"{file} cannot be read: {error!r}", expected=f"a MATLAB file with {' and '.join(names)}"
            ) from error


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
