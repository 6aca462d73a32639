"""How many threads compute: their number changes the last bits, so what was begun goes on with as many.

Features, predictions and view banks do not depend on it: they are computed block by block, each on one core. Training
and k-means do.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from justright.utils.parallel import blas_threads

_log = logging.getLogger(__name__)


@contextmanager
def computing_with(n_threads: int | None, folder: Path | None = None) -> Iterator[int]:
    """Have torch and BLAS compute with so many threads meanwhile; None: with as many as torch has.

    Another number than torch has is said aloud, with the folder that was begun with it.
    """
    before = torch.get_num_threads()
    n = n_threads or before
    if n != before:
        _log.warning(
            "%s was begun with OMP_NUM_THREADS=%d and now it is %d: going on with %d, for the same result",
            *(folder, n, before, n),
        )
    torch.set_num_threads(n)
    try:
        with blas_threads(n):
            yield n
    finally:
        torch.set_num_threads(before)
