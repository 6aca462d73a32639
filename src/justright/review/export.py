"""Export the labels of a review: a table, class folders, or a labeled set for the next run."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Int

from justright.data import ImageSet
from justright.data.columns import COLUMNS, CONTENT, column, names_column, write_csv
from justright.data.folder import is_image_name
from justright.data.parquet import write_parquet
from justright.data.readers import FolderReader
from justright.review.open_review import OpenReview
from justright.review.state import REJECTED
from justright.review.wording import listed
from justright.runs.problem import REVIEWED
from justright.utils.errors import DataError, DegenerateError
from justright.utils.files import replacing
from justright.utils.types import Array

Form = Literal["csv", "parquet", "folders", "labeled"]
UNSAFE = re.compile(r'[\x00-\x1f\x7f\\:*?"<>|]')
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
MAX_BYTES = 120  # of one part of a path; file systems take 255, and a number may follow


def label_table(opened: OpenReview) -> pa.Table:
    """One row per image: id, dataset, path, cluster, class_name, kind, status, confidence, predicted, reviewers.

    A rejected image has cluster -1, no class_name and status rejected; a cluster that reviewers disagree on is
    disputed; one that nobody judged is open.
    """
    predictions = opened.predictions
    with opened.reading() as state:
        group, place = np.unique(state.group, return_inverse=True)
        clusters: list[int] = group.tolist()
        labels = [None if cluster == REJECTED else state.labels[cluster] for cluster in clusters]
        status = ["rejected" if cluster == REJECTED else state.status(cluster) for cluster in clusters]
        who = [", ".join(sorted(state.opinions.get(cluster, ()))) for cluster in clusters]
    columns = {
        "cluster": pa.array(group[place]),
        "class_name": names_column([label.name if label else None for label in labels], place),
        "kind": names_column([label.kind if label else None for label in labels], place),
        "status": names_column(status, place),
        "confidence": pa.array(predictions.confidence.astype(np.float32)),
        "predicted": names_column([category.name for category in predictions.categories], predictions.cluster),
        "reviewers": names_column(who, place),
    }
    return pa.table({name: predictions.index[name] for name in ("id", "dataset", "path")} | columns)


def labeled_set(opened: OpenReview, dataset: str, *, is_all: bool = False, with_known: bool = False) -> ImageSet:
    """The images of kept clusters as a labeled set; clusters of equal names are one class.

    `is_all` includes clusters that nobody judged. `with_known` adds the labeled images of the run's known classes, so
    that this set can replace the one of the run. Labels of the review take precedence over earlier ones.
    """
    table = label_table(opened)
    rows = np.flatnonzero(np.isin(table["status"].to_pylist(), ["kept", "open"] if is_all else ["kept"]))
    chosen = _plain_columns(opened.run.target.take(rows))
    chosen = chosen.replaced({"split": column("split", [REVIEWED] * len(rows), len(rows))})
    names: list[str] = table["class_name"].take(pa.array(rows)).to_pylist()
    if not names:
        advice = "keep or name clusters on the page, or export all of them with --all"
        raise DegenerateError("no cluster has been kept yet, so there is nothing to export", advice=advice)
    if with_known:
        pool = opened.run.pool
        known = {each.name for each in opened.predictions.categories if each.kind == "known"} | set(names)
        of_pool = pool.of_classes(label for label, name in pool.classes.items() if name in known)
        of_pool = of_pool.take(np.flatnonzero(~_is_judged(of_pool, opened.run.target, table, rows)))
        names += of_pool.table["class_name"].to_pylist()
        chosen = ImageSet.concat([chosen, _plain_columns(of_pool)])
    return with_classes(chosen.named(dataset), names)


def with_classes(images: ImageSet, names: Sequence[str]) -> ImageSet:
    """The images with these class names, one for each image; labels number them in alphabetical order."""
    classes, labels = np.unique(np.array(names, dtype=object), return_inverse=True)
    class_names = names_column(classes.tolist(), labels)
    return images.replaced({"label": pa.array(labels.astype(np.int32)), "class_name": class_names})


def export(
    opened: OpenReview, path: Path, form: Form, is_copy: bool = False, dataset: str | None = None, **which: bool
) -> int:
    """Write the labels to `path` atomically; returns the number of images.

    which: arguments of `labeled_set`, for class folders and labeled sets.
    """
    if form in ("csv", "parquet"):
        table = label_table(opened)
        if form == "parquet":
            write_parquet(table, path)
        else:
            with replacing(path) as temporary:
                write_csv(table, temporary)
        return int(table.num_rows)
    dataset = dataset or f"{opened.run.path.resolve().name}-reviewed"
    images = labeled_set(opened, dataset, **which)
    refuse_changed(images)
    if form == "folders":
        write_class_folders(images, path, is_copy=is_copy)
    elif path.suffix.lower() == ".parquet":
        path.parent.mkdir(parents=True, exist_ok=True)
        ImageSet(images.table.drop_columns([CONTENT]), images.readers).save(path)
    else:
        raise DataError(f"cannot write a labeled set to {path}", expected="a name that ends in .parquet")
    return len(images)


def refuse_changed(images: ImageSet) -> None:
    """Raise DataError if files changed since the run: their labels belong to other images."""
    if changed := images.changed():
        raise DataError(
            f"{len(changed):,} of {len(images):,} images to export have changed since the run:\n{listed(changed)}",
            expected="the files as they were",
            advice="restore them, or reject these images in the review; --as csv writes the labels without the images",
        )


def _is_judged(
    labeled: ImageSet, target: ImageSet, table: pa.Table, rows: Int[Array, " rows"]
) -> Bool[Array, " labeled"]:
    """Which labeled images are also target images that are exported, or that have another class now."""
    contents = target.table[CONTENT]
    class_now = dict(zip(contents.to_pylist(), table["class_name"].to_pylist(), strict=True))
    exported = set(contents.take(pa.array(rows)).to_pylist())
    before = zip(labeled.table[CONTENT].to_pylist(), labeled.table["class_name"].to_pylist(), strict=True)
    return np.array([each in exported or class_now.get(each, name) != name for each, name in before], dtype=bool)


def _plain_columns(images: ImageSet) -> ImageSet:
    return ImageSet(images.table.select([*COLUMNS, CONTENT]), images.readers)


def write_class_folders(images: ImageSet, root: Path, *, is_copy: bool = False) -> None:
    """Write one folder per class below `root`, which must be new or empty and appears when it is complete.

    Image files are linked; images inside a zip or a table are written.
    """
    with new_folder(root) as building:
        fill_class_folders(images, building, [safe_part(os.path.basename(path)) for path in images.paths], is_copy)


@contextmanager
def new_folder(root: Path) -> Iterator[Path]:
    """Yield a temporary folder. Without an error it becomes `root`, which must be new or empty."""
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise DataError(f"{root} is not empty", expected="a new or empty folder", advice="choose another name")
    root.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{root.name}.", dir=root.parent))
    try:
        yield building
        building.chmod(0o755)
        building.replace(root)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def fill_class_folders(images: ImageSet, root: Path, file_names: Iterable[str], is_copy: bool) -> dict[str, str]:
    """Put the images, under these names, into one folder per class below `root`; returns the folder of each class."""
    folder_of = safe_folders(images.classes.values())
    folders = (folder_of[images.classes[label]] for label in images.labels.tolist())
    wanted = (split_name(f"{folder}/{name}") for folder, name in zip(folders, file_names, strict=True))
    for row, file in enumerate(unique_names(wanted, folder_of.values())):  # a file must not get the name of a folder
        put_image(images, row, root / file, is_copy=is_copy)
    return folder_of


def put_image(images: ImageSet, row: int, place: Path, *, is_copy: bool = False) -> None:
    """Link the file of an image to `place`; copies it, or writes it if it is inside a zip or a table."""
    place.parent.mkdir(parents=True, exist_ok=True)
    reader = images.readers[images.table["source"][row].as_py()]
    if not is_copy and isinstance(reader, FolderReader):
        place.symlink_to((reader.root / images.table["path"][row].as_py()).absolute())
    else:
        place.write_bytes(images.encoded(row))


def safe_folders(class_names: Iterable[str]) -> dict[str, str]:
    """A folder for each class name; a slash makes a subfolder, as `open_images` reads it back.

    Names that a file system cannot distinguish get a number.
    """
    folders: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(class_names):
        wanted = "/".join(safe_part(part) for part in name.split("/"))
        folders[name] = _first_free(wanted, (f"{wanted} ({number})" for number in count(2)), taken)
    return folders


def safe_part(text: str) -> str:
    """A valid name for one file or folder: no `..`, not hidden, no reserved characters."""
    text = UNSAFE.sub("_", text).strip().rstrip(". ")
    text = re.sub(r"^\.", "_", text) or "_"
    if RESERVED.fullmatch(text):
        text = f"_{text}"
    if len(text.encode()) <= MAX_BYTES:
        return text
    stem, ending = os.path.splitext(text)
    return stem.encode()[: MAX_BYTES - len(ending.encode())].decode(errors="ignore") + ending


def split_name(name: str) -> tuple[str, str]:
    """The name of an image without its ending, and the ending: .png if it is not one of an image."""
    return os.path.splitext(name) if is_image_name(name) else (name, ".png")


def unique_names(names: Iterable[tuple[str, str]], taken: Iterable[str] = ()) -> list[str]:
    """Join stems and endings; a name that is taken, ignoring case, gets its position as a number."""
    used = {name.casefold() for name in taken}
    unique = []
    for position, (stem, ending) in enumerate(names):
        numbered = (f"{stem}-{position}{'_' * n}{ending}" for n in count())
        unique.append(_first_free(stem + ending, numbered, used))
    return unique


def _first_free(wanted: str, others: Iterable[str], taken: set[str]) -> str:
    """Reserve and return the first name that is free, ignoring case."""
    free = next(name for name in chain([wanted], others) if name.casefold() not in taken)
    taken.add(free.casefold())
    return free
