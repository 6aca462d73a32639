"""Time an audit of 2,000 JPEGs against a plain loop, and the search for near duplicates among 100,000 hashes.

    python benchmarks/bench_audit.py [n_images]

The plain loop opens the files one by one, hashes bytes and image, and compares every pair of hashes in Python. Prints
wall-clock and CPU seconds; a busy machine changes only the first.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from itertools import combinations
from pathlib import Path

import imagehash
import numpy as np
from measuring import blurred_noise, load, peak_mb, timed
from PIL import Image

from justright.data.audit import audit
from justright.data.duplicates import NEAR, groups_of, near_components
from justright.data.opening import open_images

SIZE = 320
N_HASHES = 100_000


def write_photos(root: Path, n_images: int) -> None:
    """Write smooth random images with the file size of a small photo; every hundredth is a copy of the one before."""
    rng = np.random.default_rng(0)
    image = Image.new("RGB", (SIZE, SIZE))
    for number in range(n_images):
        is_copy = number % 100 == 99
        if not is_copy:
            image = blurred_noise(rng, (12, 12), (SIZE, SIZE))
        file = root / f"class{number % 20}" / f"{number}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        image.save(file, quality=60 if is_copy else 90)


def plain_audit(root: Path) -> int:
    """The number of near pairs, by a plain loop."""
    hashes, ids = [], set()
    for file in sorted(root.rglob("*.jpg")):
        ids.add(hashlib.blake2b(file.read_bytes()).hexdigest())
        with Image.open(file) as image:
            hashes.append(imagehash.phash(image.convert("RGB")))
    return sum(a - b <= NEAR for a, b in combinations(hashes, 2))


def clustered_hashes(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Hashes and mean colors: half random, half within a few bits of one of the others."""
    rng = np.random.default_rng(0)
    base = rng.integers(0, 2**64, n // 2, dtype=np.uint64)
    flips = np.bitwise_or.reduce(np.uint64(1) << rng.integers(0, 64, (3, n - n // 2), dtype=np.uint64), axis=0)
    return np.concatenate([base, rng.choice(base, n - n // 2) ^ flips]), rng.integers(325, 340, (n, 3))


def main(n_images: int) -> None:
    print(f"{load()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_photos(root, n_images)
        wall, cpu, report = timed(lambda: audit([open_images(root)]))
        n_groups = sum(finding.kind.endswith("near") for finding in report.findings)
        print(f"audit: {n_images:,} JPEGs of {SIZE} px in {wall:.2f} s ({cpu:.2f} s of CPU), ", end="")
        print(f"{n_images / wall:,.0f} images/s, {n_groups} groups of near copies")
        plain_wall, plain_cpu, n_pairs = timed(lambda: plain_audit(root))
        print(f"plain loop: {plain_wall:.2f} s ({plain_cpu:.2f} s of CPU), {n_pairs} pairs; ", end="")
        print(f"{plain_wall / wall:.1f} times as long, {plain_cpu / cpu:.1f} times the CPU time")
    hashes, colors = clustered_hashes(N_HASHES)
    for near in (2, NEAR, 8, 10):
        wall, cpu, components = timed(lambda near=near: near_components(hashes, colors, near))
        n_groups = sum(1 for _ in groups_of(components))
        print(f"near search: {N_HASHES:,} hashes, {near} bits: {wall:.2f} s ({cpu:.2f} s of CPU), {n_groups:,} groups")
    print(f"peak memory {peak_mb():,.0f} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)
