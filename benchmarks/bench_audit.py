"""How fast an audit is: 2,000 JPEGs against the plain way, and the near search alone at 100,000 hashes.

    python benchmarks/bench_audit.py [n_images]

The plain way opens the files one by one, hashes bytes and image, and compares every pair of hashes in a Python loop.
Seconds of the clock and of the processor; a busy machine stretches the first only.
"""

from __future__ import annotations

import hashlib
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import imagehash
import numpy as np
from PIL import Image

from justright.audit.audit import audit
from justright.audit.duplicates import NEAR, groups_of, near_components
from justright.data.opening import open_images

SIZE = 320
N_HASHES = 100_000


def write_photos(root: Path, n_images: int) -> None:
    """Smooth random color fields of the weight of a small photo, every hundredth a copy of the one before."""
    rng = np.random.default_rng(0)
    image = Image.new("RGB", (SIZE, SIZE))
    for number in range(n_images):
        is_copy = number % 100 == 99
        if not is_copy:
            field = rng.integers(0, 256, (12, 12, 3), dtype=np.uint8)
            image = Image.fromarray(field).resize((SIZE, SIZE), Image.Resampling.BICUBIC)
        file = root / f"class{number % 20}" / f"{number}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        image.save(file, quality=60 if is_copy else 90)


def plain_way(root: Path) -> int:
    hashes, ids = [], set()
    for file in sorted(root.rglob("*.jpg")):
        ids.add(hashlib.blake2b(file.read_bytes()).hexdigest())
        with Image.open(file) as image:
            hashes.append(imagehash.phash(image.convert("RGB")))
    return sum(a - b <= NEAR for a, b in combinations(hashes, 2))


def timed(work: Callable[..., Any], *arguments: Any) -> tuple[float, float, Any]:
    clock, processor = time.perf_counter(), time.process_time()
    value = work(*arguments)
    return time.perf_counter() - clock, time.process_time() - processor, value


def clustered_hashes(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Half random, half within a few bits of one of the others."""
    rng = np.random.default_rng(0)
    base = rng.integers(0, 2**64, n // 2, dtype=np.uint64)
    flips = np.bitwise_or.reduce(np.uint64(1) << rng.integers(0, 64, (3, n - n // 2), dtype=np.uint64), axis=0)
    return np.concatenate([base, rng.choice(base, n - n // 2) ^ flips]), rng.integers(325, 340, (n, 3))


def main(n_images: int) -> None:
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_photos(root, n_images)
        clock, processor, report = timed(audit, [open_images(root)])
        n_groups = sum(finding.kind.endswith("near") for finding in report.findings)
        print(f"audit: {n_images:,} JPEGs of {SIZE} px in {clock:.2f} s ({processor:.2f} s of processor), ", end="")
        print(f"{n_images / clock:,.0f} images/s, {n_groups} groups of near copies")
        plain_clock, plain_processor, n_pairs = timed(plain_way, root)
        print(f"plain way: {plain_clock:.2f} s ({plain_processor:.2f} s of processor), {n_pairs} pairs; ", end="")
        print(f"{plain_clock / clock:.1f} times the clock, {plain_processor / processor:.1f} times the processor")
    hashes, colors = clustered_hashes(N_HASHES)
    for near in (2, NEAR, 8, 10):
        clock, processor, components = timed(near_components, hashes, colors, near)
        n_groups = sum(1 for _ in groups_of(components))
        print(f"near search: {N_HASHES:,} hashes, {near} bits: {clock:.2f} s ({processor:.2f} s), {n_groups:,} groups")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)
