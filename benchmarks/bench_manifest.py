"""Open a million-row manifest, as CSV and as a saved Parquet set: seconds, and memory beside the bare table read."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import measuring
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from justright.data import open_images

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000


def timed(what: str, work, repeat: int = 3):
    runs = [measuring.timed(work) for _ in range(repeat)]
    best = min(run.clock for run in runs)
    print(f"{what:<42} {best:6.2f} s")
    return best, runs[-1].value


with tempfile.TemporaryDirectory() as folder:
    csv, parquet = Path(folder) / "manifest.csv", Path(folder) / "set.parquet"
    with csv.open("w") as out:
        out.write("path,label,class_name,superclass,split\n")
        for i in range(ROWS):
            c = i % 2000
            out.write(f"images/{c:04d}/{i:07d}.jpg,{c},class {c:04d},group {c % 50},{'train' if i % 3 else 'test'}\n")
    before = measuring.peak_mb() / 1024
    bare, _ = timed("bare read of the CSV", lambda: pa_csv.read_csv(csv))
    ours, images = timed("ImageSet from the CSV", lambda: open_images(csv))
    print(f"{'ratio':<42} {ours / bare:6.2f}")
    images.save(parquet)
    bare, _ = timed("bare read of the Parquet", lambda: pq.read_table(parquet, memory_map=True))
    ours, images = timed("ImageSet from the Parquet", lambda: open_images(parquet))
    print(f"{'ratio':<42} {ours / bare:6.2f}")
    timed("its classes, hierarchy and labels", lambda: (images.classes, images.hierarchy, images.labels), repeat=1)
    print(f"{'rows':<42} {len(images):,}")
    print(f"{'peak memory of the process':<42} {measuring.peak_mb() / 1024:6.2f} GB (before: {before:.2f})")
