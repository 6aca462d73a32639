"""Images made ready to be looked at: an ImageSet as files, one folder a class, or some images as one sheet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PIL import Image

from justright.data.folder import is_image_name
from justright.data.image_set import ImageSet
from justright.utils.context import track
from justright.utils.files import replacing
from justright.utils.parallel import n_cores, open_processes

CHUNK = 200  # images a worker writes before it reports back


def write_tree(images: ImageSet, root: Path, n_processes: int | None = None) -> int:
    """Write every image below `root` at its own path and say how many were written now.

    Files that are there already stay, so a stopped run goes on where it was.
    """
    chunks = [range(first, min(first + CHUNK, len(images))) for first in range(0, len(images), CHUNK)]
    work = partial(_write_chunk, images, root)
    what, n_processes = f"writing, {CHUNK} images a step", n_processes or n_cores()
    if n_processes == 1 or len(chunks) == 1:
        return sum(track(map(work, chunks), len(chunks), what))
    with open_processes(n_processes) as engine:
        return sum(track(engine(work, chunks), len(chunks), what))


def _write_chunk(images: ImageSet, root: Path, rows: range) -> int:
    n_written = 0
    for row in rows:
        path = images.table["path"][row].as_py()
        file = root / (path if is_image_name(path) else f"{path}.png")
        if file.exists():
            continue
        # whole or absent; a flush to disk for each of thousands would take minutes
        with replacing(file, is_flushed=False) as temporary:
            temporary.write_bytes(images.encoded(row))
        n_written += 1
    return n_written


def contact_sheet(images: Sequence[Image.Image], columns: int, gap: int) -> Image.Image:
    """Put images of one size into rows of `columns`, left to right, on white."""
    width, height = images[0].size
    n_rows = -(-len(images) // columns)
    sheet = Image.new("RGB", (columns * (width + gap) - gap, n_rows * (height + gap) - gap), "white")
    for number, image in enumerate(images):
        row, column = divmod(number, columns)
        sheet.paste(image, (column * (width + gap), row * (height + gap)))
    return sheet
