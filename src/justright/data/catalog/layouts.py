"""From the folders of a data set to its images: what is there, which class it is, which part it belongs to."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from jaxtyping import Int

from justright.data.columns import names_column
from justright.data.folder import is_image_name, walk
from justright.data.image_set import ImageSet
from justright.data.readers import FolderReader
from justright.types import Array, Labels, Mask

# paths of images and one label each; no name for the axis: two parts differ in length
LabeledPaths: TypeAlias = tuple[list[str], Int[Array, " _"]]
Parts: TypeAlias = Sequence[LabeledPaths]
Names: TypeAlias = Sequence[str]
Levels: TypeAlias = Sequence[Sequence[str | None]]  # super-categories: one sequence a level, fine to coarse


def missing(path: Path) -> FileNotFoundError:
    """The error a loader raises for a file or folder that is not there, or a folder with nothing in it."""
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def inside(root: Path, name: str) -> Path:
    """The folder that the official archive unpacks to, whether `root` is that folder or holds it."""
    return root / name if (root / name).is_dir() else root


def first_folder(root: Path, *candidates: str) -> str:
    """The first of several usual names that is a folder below `root`."""
    for name in candidates:
        if (root / name).is_dir():
            return name
    raise missing(root / candidates[0])


def check_present(folder: Path, paths: Iterable[str]) -> None:
    """FileNotFoundError for the first path that is not below `folder`; one walk instead of a look at each file."""
    there = set(walk(folder))
    for path in paths:
        if path not in there:
            raise missing(folder / path)


def class_folders(folder: Path) -> list[str]:
    """The folders in a folder, sorted as strings, hidden ones left out."""
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    if not names:
        raise missing(folder / "*")
    return names


def images_in(root: Path, part: str, folders: Sequence[str], first_label: int = 0) -> LabeledPaths:
    """The images in folders of `root/part`, as paths below `root`; folders are labeled in the order given.

    Files are sorted by name inside each folder, which is ImageFolder's order where the folders are sorted.
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


def assemble(
    root: Path, dataset: str, path: Names, label: Labels, is_train: Mask, class_names: Names, superclasses: Levels = ()
) -> ImageSet:
    """An ImageSet from columns with one entry an image, and names with one entry a class."""
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
    """An ImageSet from whole parts, one after the other, as most data sets come."""
    paths = [path for paths, _ in (*train, *test) for path in paths]
    labels = np.concatenate([labels for _, labels in (*train, *test)])
    is_train = np.arange(len(paths)) < sum(len(paths) for paths, _ in train)
    return assemble(root, dataset, paths, labels, is_train, class_names, superclasses)
