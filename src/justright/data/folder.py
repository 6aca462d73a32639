"""Images in folders and zips as an ImageSet, and an ImageSet as files."""

from __future__ import annotations

import os
import posixpath
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from justright.data.columns import levels_of, nfc, text_column
from justright.data.decoding import HEIF_EXTRA, reads_heif
from justright.data.image_set import ImageSet
from justright.data.manifest import images_of_table, path_column, read_csv
from justright.data.readers import FolderReader, ZipReader, open_zip, read_all
from justright.utils.context import track
from justright.utils.errors import DataError, MissingDataError
from justright.utils.files import replacing
from justright.utils.parallel import in_threads, n_cores
from justright.utils.types import UNLABELED
from justright.utils.wording import count_text, first_names

IMAGE_SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".avif", ".jp2"}
)
HEIF_SUFFIXES = frozenset({".heic", ".heif", ".hif"})  # read if the extra `heif` is installed
N_SHOWN = 3
MAX_WAYS = 100  # more ways to one folder are rejected: folders that link each other have unboundedly many paths


def open_folder(root: Path) -> ImageSet:
    """Open every image below `root`; its class is its folder.

    Folders above a class are its super-categories (`birds/gulls/herring_gull/1.jpg`), and the class name is then the
    whole path (`birds/gulls/herring_gull`), because two branches may use one word. Images directly in `root` have no
    class. Classes and files are sorted by name, as in torchvision's ImageFolder.
    """
    if not root.is_dir():
        raise MissingDataError(f"no such folder: {root}")
    files = list(walk(root))
    paths = [path for path in files if is_recognized(path)]
    for path in paths:
        if not path.isascii() and "\\udc" in ascii(path):
            raise DataError(f"the file name {path!r} in {root} is not UTF-8", advice="rename the file")
    if not paths:
        raise no_images(root, files)
    return ImageSet.of(FolderReader(root.absolute()), dataset=root.resolve().name, **columns_of(paths))


def no_images(source: Path, others: Sequence[str]) -> DataError:
    """The error for a folder or zip without images; `others` are the files that it holds."""
    found, advice = "no file", "give the folder or zip that holds the images, at any depth"
    if others:
        names = first_names(sorted(others), N_SHOWN).encode(errors="backslashreplace").decode()
        found = f"{count_text(len(others), 'other file')} ({names})"
    if n_heif := sum(is_image_name(path) for path in others):
        advice = f"{HEIF_EXTRA} to read {count_text(n_heif, 'HEIF photo')}"
    return DataError(
        f"{source} holds no images, and {found}",
        expected=f"files that end in {', '.join(sorted(IMAGE_SUFFIXES | (HEIF_SUFFIXES if reads_heif() else set())))}",
        advice=advice,
    )


def columns_of(paths: list[str]) -> dict[str, Any]:
    """Path, label, class name and super-categories of files in class folders, sorted as by ImageFolder."""
    paths = sorted(paths, key=lambda path: (nfc(os.path.dirname(path)), path))
    folders = [nfc(os.path.dirname(path)) for path in paths]
    label_of = {folder: label for label, folder in enumerate(sorted(set(folders) - {""}))}
    return {
        "path": paths,
        "label": [label_of.get(folder, UNLABELED) for folder in folders],
        "class_name": [folder or None for folder in folders],
        "superclasses": levels_of([folder.split("/")[:-1] for folder in folders]),
    }


def is_image_name(path: str) -> bool:
    """Whether the suffix is that of an image, including HEIF without the extra that reads it."""
    return os.path.splitext(path)[1].lower() in IMAGE_SUFFIXES | HEIF_SUFFIXES


def is_recognized(path: str) -> bool:
    """Whether the suffix is that of an image that can be read here."""
    suffix = os.path.splitext(path)[1].lower()
    return suffix in IMAGE_SUFFIXES or (suffix in HEIF_SUFFIXES and reads_heif())


def why_unrecognized(path: str) -> str:
    """Why a file is skipped."""
    return f"a HEIF photo: {HEIF_EXTRA} to read it" if is_image_name(path) else "its name does not end like an image's"


def walk(root: Path) -> Iterator[str]:
    """Yield every file below `root`, relative to it, except hidden ones. Links are followed, cycles are not."""
    # a folder below `root`, the real paths of it and the folders above it, and how many of them are links
    pending: list[tuple[str, tuple[str, ...], int]] = [("", (os.path.realpath(root),), 0)]
    n_ways: Counter[str] = Counter()
    while pending:
        folder, above, n_links = pending.pop()
        try:
            with os.scandir(os.path.join(root, folder)) as opened:
                entries = [entry for entry in opened if not entry.name.startswith(".")]
        except FileNotFoundError:
            if not folder:
                raise
            continue  # removed while the tree is read
        except OSError as error:
            problem = f"the folder {os.path.join(root, folder)} cannot be read: {error.strerror or error}"
            raise DataError(problem, advice="allow reading it, or leave it out") from error
        for entry in entries:
            path, is_link = f"{folder}/{entry.name}" if folder else entry.name, entry.is_symlink()
            # `isdir` is False for a link to itself or to an unreadable place: reported when the file is read
            if not (os.path.isdir(entry.path) if is_link else entry.is_dir()):
                yield path
                continue
            real, n_links_inside = os.path.join(above[-1], entry.name), n_links
            if is_link:
                real, n_links_inside = os.path.realpath(real), n_links + 1
            if real in above:
                continue
            if n_links_inside > 1:  # links inside links multiply the paths
                n_ways[real] += 1
            if n_ways[real] > MAX_WAYS:
                raise DataError(
                    f"links in {root} lead to {real} in more than {MAX_WAYS} ways, one of them {path}",
                    expected="linked folders that do not hold links to each other",
                    advice="remove those links, or list the images in a table",
                )
            pending.append((path, (*above, real), n_links_inside))


def open_archive(archive: Path) -> ImageSet:
    """Open the images of a zip without unpacking it. Labels come from a CSV inside, or from folders.

    Paths in the CSV may be relative to the zip, to the CSV, or to a folder `images` beside it.
    """
    reader = ZipReader(archive.absolute())
    with open_zip(archive) as opened:
        members = _members(opened)
        tables = [name for name in members if name.lower().endswith(".csv")]
        if len(tables) > 1:
            raise DataError(f"{archive} holds {len(tables)} CSV files", expected="one with the labels, or none")
        table = _read_table_inside(opened, tables[0], f"{tables[0]} in {archive}") if tables else None
    if table is not None:
        return _labeled(table, reader, members, tables[0])
    images = [name for name in members if is_recognized(name)]
    if not images:
        raise no_images(archive, members)
    return ImageSet.of(reader, dataset=archive.stem, **columns_of(images))


def unrecognized(source: Any) -> list[str]:
    """The files of a folder or a zip that are neither images by name nor the labels of a zip, without hidden ones."""
    if not isinstance(source, str | os.PathLike):
        return []
    path = Path(source)
    names: list[str] = []
    if path.is_dir():
        names = list(walk(path))
    elif path.is_file() and path.suffix.lower() == ".zip":
        with open_zip(path) as opened:
            names = [name for name in _members(opened) if not name.lower().endswith(".csv")]
    return sorted(name for name in names if not is_recognized(name))


def _members(opened: zipfile.ZipFile) -> list[str]:
    """The files of a zip, without hidden ones and those that macOS adds."""
    names = [info.filename for info in opened.infolist() if not info.is_dir()]
    return [name for name in names if not name.startswith((".", "__MACOSX/")) and "/." not in name]


def _read_table_inside(opened: zipfile.ZipFile, member: str, origin: str) -> pa.Table:
    try:
        with opened.open(member) as file:
            return read_csv(read_all(file, opened.getinfo(member).file_size, member))
    except Exception as error:  # encrypted, damaged, unknown compression, no CSV: each raises its own errors
        raise DataError(
            f"{origin} cannot be read: {error}",
            expected="a CSV that is neither damaged nor encrypted",
            advice="write the zip again",
        ) from error


def _labeled(table: pa.Table, reader: ZipReader, members: list[str], member: str) -> ImageSet:
    """The images of a zip that the CSV `member` lists."""
    origin, folder = f"{member} in {reader.archive}", posixpath.dirname(member)
    names = text_column(table, path_column(table.column_names, origin), origin).to_pylist()
    if not names:
        raise DataError(f"{origin} has no rows", expected="a row for each image")
    for prefix in ("", posixpath.join(folder, ""), posixpath.join(folder, "images", "")):
        if f"{prefix}{names[0]}" in members:
            return images_of_table(table, reader, reader.archive.stem, origin, prefix)
    raise DataError(
        f"{origin} lists {names[0]!r}, which is not in {reader.archive.name}",
        expected="paths relative to the zip, to the CSV, or to a folder images beside it",
    )


def write_tree(images: ImageSet, root: Path) -> int:
    """Write every image below `root` at its own path, except existing files; returns how many were written."""

    def write(row: int) -> bool:
        path = images.table["path"][row].as_py()
        file = root / (path if is_image_name(path) else f"{path}.png")
        if file.exists():
            return False
        # atomic, but not flushed to disk: that would take minutes for thousands of files
        with replacing(file, is_flushed=False) as temporary:
            temporary.write_bytes(images.encoded(row))
        return True

    written = in_threads(write, range(len(images)), n_cores())
    return sum(track(written, len(images), "writing images"))
