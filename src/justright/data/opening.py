"""Open images as an ImageSet, wherever they are: in a folder, a table, a zip, a known data set, an object in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from justright.data.catalog import DATA_SETS
from justright.data.columns import SUPERCLASS
from justright.data.folder import is_image_name, is_recognized, no_images, open_archive, open_folder, walk
from justright.data.image_set import ImageSet
from justright.data.manifest import LAYOUT, PATH_NAMES, arrow_table, images_of_table, open_manifest, path_column
from justright.data.objects import from_dataset
from justright.data.readers import FolderReader
from justright.utils.errors import DataError, MissingDataError

ACCEPTED = (
    "a folder with one folder per class, a table (.csv or .parquet), a zip of images, NAME:FOLDER for a data set of "
    "`justright data --list`, or glyphs"
)
TABLE_COLUMNS = ("label", "class_name", "id", "split", "dataset")
CONTAINERS = (".csv", ".parquet", ".zip")


def open_images(source: Any, name: str | None = None) -> ImageSet:
    """Open images as an ImageSet.

    Parameters:
        source: a folder, a zip, a CSV or Parquet file, or a data set of the catalog (`"cub:/data/cub"`, `"glyphs"`);
            a list of paths; a dict from class to paths or folders; a pandas DataFrame or Arrow table with a column
            `path` and perhaps `label`, `class_name`, `id`, `split`; a torchvision-style data set, a list of images or
            of pairs of path and label;
            a Hugging Face `datasets.Dataset`; an ImageSet. Relative paths start at the current folder.
        name: the name of the data set; by default that of the source.
    """
    images = _open(source, name)
    return images if name is None else images.named(name)


def _open(source: Any, name: str | None) -> ImageSet:
    if isinstance(source, ImageSet):
        return source
    if isinstance(source, str | os.PathLike):
        return _from_path(os.fspath(source))
    if isinstance(source, pa.Table) or (hasattr(source, "columns") and hasattr(source, "iloc")):
        return _from_table(source)
    if isinstance(source, Mapping):
        return _from_classes(source)
    is_series = hasattr(source, "iloc")  # of pandas
    if is_series or isinstance(source, list | tuple | set | frozenset | np.ndarray):
        items = sorted(source) if isinstance(source, set | frozenset) else list(source)
        if not items:
            raise DataError("the list of images is empty", expected="at least one path or image")
        if any(isinstance(item, str | os.PathLike) for item in items):
            return _from_paths(files_of(items, "the list"))
        source = items
    return from_dataset(source, name)


def _from_path(source: str) -> ImageSet:
    name, _, root = source.partition(":")
    path = Path(source).expanduser()
    if name in DATA_SETS and not path.exists():
        return DATA_SETS[name].load(root)
    if path.is_dir():
        return open_folder(path)
    if not path.is_file():
        raise MissingDataError(f"no such file or folder: {source}", expected=ACCEPTED)
    if is_image_name(source):
        return _from_paths([source])
    return open_archive(path) if path.suffix.lower() == ".zip" else open_manifest(path)


def _from_paths(paths: list[str], **columns: list[str]) -> ImageSet:
    return _from_table(arrow_table([("path", paths), *columns.items()], "images"), "images")


def _from_classes(classes: Mapping[Any, Any]) -> ImageSet:
    """A dict from class name to a path, a folder, or several of them."""
    paths: list[str] = []
    names: list[str] = []
    for name, sources in classes.items():
        if isinstance(sources, str | os.PathLike):
            sources = [sources]
        if not isinstance(sources, Iterable) or hasattr(sources, "features"):
            raise DataError(
                f"{name!r} holds a {type(sources).__name__}",
                expected="a dict from class name to paths or folders",
                advice=f"for a dict of data sets open one of them, such as data[{name!r}]",
            )
        files = files_of(sources, f"class {name!r}")
        paths += files
        names += [str(name)] * len(files)
    if not paths:
        raise DataError("the dict of classes holds no paths", expected="paths or folders for each class")
    return _from_paths(paths, class_name=names)


def files_of(paths: Iterable[Any], origin: str) -> list[str]:
    """The files that a list names: files as they are, for a folder the images below it."""
    files: list[str] = []
    for path in paths:
        if not isinstance(path, str | os.PathLike):
            raise DataError(f"{origin} holds a {type(path).__name__}", expected="paths of images or folders")
        path = os.fspath(path)
        if path.lower().endswith(CONTAINERS):
            raise DataError(
                f"{origin} holds {path}",
                expected="paths of images or folders",
                advice="open each table or zip by itself",
            )
        if not os.path.isdir(path):
            files.append(path)
            continue
        inside = list(walk(Path(path)))
        images = [os.path.join(path, image) for image in sorted(inside) if is_recognized(image)]
        if not images:
            raise no_images(Path(path), inside)
        files += images
    return files


def _from_table(source: Any, origin: str = "the table") -> ImageSet:
    """A pandas DataFrame or an Arrow table; relative paths start at the current folder."""
    names = [str(name) for name in (source.column_names if isinstance(source, pa.Table) else source.columns)]
    path_column(names, origin)
    if not len(source):
        raise DataError(f"{origin} has no rows", expected=LAYOUT)
    if not isinstance(source, pa.Table):
        is_used = [name in (*PATH_NAMES, *TABLE_COLUMNS) or name.startswith(SUPERCLASS) for name in names]
        columns = [(name, source.iloc[:, place]) for place, name in enumerate(names) if is_used[place]]
        source = arrow_table(columns, origin)
    images = images_of_table(source, FolderReader(Path.cwd()), "images", origin)
    if not any(map(os.path.exists, images.paths)):
        raise MissingDataError(
            f"none of the {len(images):,} files of {origin} exist, such as {images.paths[0]}",
            expected=f"absolute paths, or paths relative to {Path.cwd()}",
        )
    return images
