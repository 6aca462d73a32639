"""Time a whole run by stage, as a new user starts it: 1,987 photos, 443 labeled ones of 30 classes, a pool of 1,188.

With --data the photos come from zips in a folder, with one folder per class: cub200.zip for the photos and the labeled
ones, pets37.zip for the pool. Without it drawn characters are written as JPEGs of 500 x 375 pixels. The run is a
separate process with an empty cache. Prints wall-clock and CPU seconds and the load; on a busy machine only CPU seconds
are comparable.
Run: python benchmarks/whole_run.py --data FOLDER
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from measuring import load
from PIL import Image

from justright import glyph_set
from justright.data import ImageSet

GOAL = 600.0  # seconds on two idle cores
N_IMAGES = {"photos": 1987, "labeled": 443, "pool": 1188}
N_KNOWN, N_NEW, N_POOL_CLASSES = 30, 51, 37


def from_zips(folder: Path, out: Path, n_images: Mapping[str, int]) -> None:
    """Known classes give their first images to the labeled ones, and all classes later ones to the photos."""
    with zipfile.ZipFile(folder / "cub200.zip") as birds, zipfile.ZipFile(folder / "pets37.zip") as pets:
        write(birds, N_KNOWN, n_images["labeled"], out / "labeled", 0)
        write(birds, N_KNOWN + N_NEW, n_images["photos"], out / "photos", 15, is_flat=True)
        write(pets, N_POOL_CLASSES, n_images["pool"], out / "pool", 0)


def write(
    archive: zipfile.ZipFile, n_classes: int, n_images: int, out: Path, first: int, is_flat: bool = False
) -> None:
    by_class: dict[str, list[str]] = defaultdict(list)
    for name in sorted(archive.namelist()):
        if name.endswith((".webp", ".jpg", ".png")):
            by_class[name.split("/")[-2]].append(name)
    classes = sorted(by_class)[:n_classes]
    turns = ((label, place) for place in range(first, 1000) for label in classes)
    chosen = [(label, by_class[label][place]) for label, place in turns if place < len(by_class[label])][:n_images]
    for label, name in chosen:
        file = out / (f"{label}-{Path(name).name}" if is_flat else f"{label}/{Path(name).name}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(archive.read(name))


def from_glyphs(out: Path, n_images: Mapping[str, int]) -> None:
    classes = {"labeled": range(N_KNOWN), "photos": range(N_KNOWN + N_NEW), "pool": range(200, 200 + N_POOL_CLASSES)}
    for part, own in classes.items():
        images = glyph_set(-(-n_images[part] // len(own)), seed=len(own)).of_classes(own)
        draw(images, n_images[part], out / part, is_flat=part == "photos")


def draw(images: ImageSet, n_images: int, out: Path, is_flat: bool = False) -> None:
    for row in range(n_images):
        place = row * len(images) // n_images
        file = out / f"{row:04d}.jpg" if is_flat else out / str(images.labels[place]) / f"{row:04d}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        images.image(place).resize((500, 375), Image.Resampling.BICUBIC).save(file, quality=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with cub200.zip and pets37.zip")
    parser.add_argument("--backbone", default="efficientnet_lite0")
    parser.add_argument("--epochs", type=int, help="instead of those of the scale")
    parser.add_argument("--share", type=float, default=1.0, help="share of the images to use")
    options = parser.parse_args()
    n_images = {part: max(1, round(options.share * n)) for part, n in N_IMAGES.items()}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if options.data is not None and (options.data / "cub200.zip").exists():
            from_zips(options.data, folder, n_images)
        else:
            print("no photos found: using drawn characters")
            from_glyphs(folder, n_images)
        sources = [word for part in ("labeled", "pool") for word in (f"--{part}", str(folder / part))]
        command = [sys.executable, "-m", "justright", "discover", *sources, "--target", str(folder / "photos")]
        command += ["--scale", "small", "--backbone", options.backbone, "--device", "cpu", "--no-report", "--verbose"]
        command += ["--k", str(N_KNOWN + N_NEW)] if options.share < 1 else []  # too few images to estimate K
        command += ["--epochs", str(options.epochs)] if options.epochs else []
        environment = os.environ | {"JUSTRIGHT_HOME": str(folder / "home")}
        started = time.perf_counter()
        subprocess.run([*command, "--out", str(folder / "run")], env=environment, check=True)
        wall, used = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        about = json.loads((folder / "run" / "run.json").read_text(encoding="utf-8"))
    print(", ".join(f"{stage} {seconds:.0f} s" for stage, seconds in about["seconds"].items()))
    n_cores = len(os.sched_getaffinity(0))
    print(
        f"{wall:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of CPU, {n_cores} cores, {load()}; "
        f"goal: at most {GOAL:.0f} s on two idle cores"
    )


if __name__ == "__main__":
    main()
