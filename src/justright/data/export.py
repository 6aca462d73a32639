"""An ImageSet written out as files, one folder a class."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from justright.data.folder import is_image_name
from justright.data.image_set import ImageSet
from justright.files import replacing
from justright.parallel import n_cores
from justright.progress import Track, silent

CHUNK = 200  # images a worker writes before it reports back


def write_tree(images: ImageSet, root: Path, n_processes: int | None = None, track: Track = silent) -> int:
    """Write every image below `root` at its own path and say how many were written now.

    Files that are there already stay, so a stopped run goes on where it was.
    """
    chunks = [range(first, min(first + CHUNK, len(images))) for first in range(0, len(images), CHUNK)]
    work = partial(_write_chunk, images, root)
    what, n_processes = f"writing, {CHUNK} images a step", n_processes or n_cores()
    if n_processes == 1 or len(chunks) == 1:
        return sum(track(map(work, chunks), len(chunks), what))
    # spawned, because a fork of a process with threads can hang
    with ProcessPoolExecutor(n_processes, multiprocessing.get_context("spawn")) as processes:
        return sum(track(processes.map(work, chunks), len(chunks), what))


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
