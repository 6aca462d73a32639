"""A zip of images as an ImageSet, without unpacking it."""

from __future__ import annotations

import io
import posixpath
import zipfile
from pathlib import Path

import pyarrow as pa

from justright.data.checked_columns import text_column
from justright.data.folder import columns_of, is_recognised, no_images
from justright.data.image_set import ImageSet
from justright.data.manifest import images_of_table, path_column, read_csv, read_table
from justright.data.readers import MAX_FILE_BYTES, ZipReader, open_zip, read_rest
from justright.utils.errors import DataError


def open_archive(archive: Path, labels: Path | None = None, dataset: str | None = None) -> ImageSet:
    """The images of a zip. Their labels come from the CSV inside it, from `labels`, or from the folders inside.

    Paths in the CSV may be relative to the zip, to the CSV, or to a folder `images` beside it.
    """
    with open_zip(archive) as opened:
        members = _members(opened)
        tables = [name for name in members if name.lower().endswith(".csv")]
        reader, dataset = ZipReader(archive.absolute()), dataset or archive.stem
        if labels is not None:
            return _labeled(read_table(labels), reader, dataset, members, str(labels), "")
        if len(tables) == 1:
            origin = f"{tables[0]} in {archive}"
            table = _read_table_inside(opened, tables[0], origin)
            return _labeled(table, reader, dataset, members, origin, posixpath.dirname(tables[0]))
    if len(tables) > 1:
        raise DataError(
            f"{archive} holds {len(tables)} CSV files", expected="one with the labels", advice="name it with `labels`"
        )
    images = [name for name in members if is_recognised(name)]
    if not images:
        raise no_images(archive, members)
    return ImageSet.of(reader, dataset=dataset, **columns_of(images))


def other_members(archive: Path) -> list[str]:
    """The files of a zip that are not taken for images because of their names: no CSV, no hidden one."""
    with open_zip(archive) as opened:
        names = _members(opened)
    return sorted(name for name in names if not is_recognised(name) and not name.lower().endswith(".csv"))


def _members(opened: zipfile.ZipFile) -> list[str]:
    """The files of a zip; hidden ones, and what a Mac adds for each file, are left out."""
    names = [info.filename for info in opened.infolist() if not info.is_dir()]
    return [name for name in names if not name.startswith((".", "__MACOSX/")) and "/." not in name]


def _read_table_inside(opened: zipfile.ZipFile, member: str, origin: str) -> pa.Table:
    if (size := opened.getinfo(member).file_size) > MAX_FILE_BYTES:
        raise DataError(f"{origin} unpacks to {size:,} bytes", expected=f"at most {MAX_FILE_BYTES:,}")
    try:
        with opened.open(member) as file:
            return read_csv(io.BytesIO(read_rest(file, member)))
    except Exception as error:  # encrypted, damaged, packed in an unknown way, no CSV: each has errors of its own
        raise DataError(
            f"{origin} cannot be read: {error}",
            expected="a CSV that is neither damaged nor encrypted",
            advice="make the zip anew, or give the labels beside it",
        ) from error


def _labeled(
    table: pa.Table, reader: ZipReader, dataset: str, members: list[str], origin: str, folder: str
) -> ImageSet:
    names = text_column(table, path_column(table, origin), origin).to_pylist()
    present = set(members)
    if names:
        for prefix in dict.fromkeys(("", posixpath.join(folder, ""), posixpath.join(folder, "images", ""))):
            if f"{prefix}{names[0]}" in present:
                return images_of_table(table, reader, dataset, origin, prefix.removeprefix("/"))
    first = repr(names[0]) if names else "nothing"
    raise DataError(
        f"{origin} lists {first}, which is not in {reader.archive.name}",
        expected="paths relative to the zip, to the CSV, or to a folder images beside it",
    )
