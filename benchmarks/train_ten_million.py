"""Measure the memory of a training on ten million images: labels, weights, sampler, assignments, predictions.

Run: PYTHONPATH=src python benchmarks/train_ten_million.py [--images 10000000] [--steps 300]
Images and their small stored views are generated when they are read, so that memory grows only by what training keeps
of every image. The features after training, four bytes per number, are reported separately.
"""

from __future__ import annotations

import gc
import re
import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from measuring import options

from justright.data.image_set import ImageSet
from justright.data.readers import Reader
from justright.data.splits import Split
from justright.data.transforms import ImageRecipe
from justright.discovery import base
from justright.discovery.simgcd import SimGCD, SimGCDConfig
from justright.features.backbone import Backbone
from justright.features.bank import Views
from justright.features.guarded_timm import VisionTransformer
from justright.utils.hashing import in_blocks

N_CLASSES = 20
LABELED_SHARE = 0.2


class MadeUpReader(Reader):
    """Generated files, each with a version like that of a file on disk."""

    source = "made-up:"

    def encoded(self, path: str) -> bytes:
        return path.encode()

    def version(self, path: str) -> tuple[int, ...]:
        return len(path), hash(path), 1_700_000_000_000_000_000, hash(path) >> 20

    def saved_as(self, folder: Path) -> str:
        return self.source


class MadeUpViews(Views):
    """A pattern for each class, changed a little for each image and view; the same at every reading."""

    def batch(self, rows: np.ndarray, views: np.ndarray) -> Any:
        parts = []
        for number, shape in enumerate(self.backbone.stored_shapes):
            wave = np.arange(int(np.prod(shape)), dtype=np.float32) * (number + 1)
            values = np.sin((rows % N_CLASSES)[:, None] * wave + 0.1 * (rows * 7 + views)[:, None])
            parts.append(torch.from_numpy(values.reshape(len(rows), *shape).astype(np.float32)))
        return tuple(parts)

    def choose(self, epoch: int, step: int, n_images: int, n_views: int = 2) -> np.ndarray:
        return np.repeat(np.arange(n_views)[:, None], n_images, axis=1)


def made_up_images(n: int, name: str, n_classes: int | None) -> ImageSet:
    blocks = ([f"{name}/images/{row:08d}" for row in block] for block in in_blocks(np.arange(n)))
    path = pa.chunked_array([pa.array(block, pa.string()) for block in blocks], pa.string())
    label = None if n_classes is None else np.arange(n) % n_classes
    return ImageSet.of(MadeUpReader(), dataset=name, path=path, label=label)


def tiny_backbone() -> Backbone:
    torch.manual_seed(0)
    sizes = {"img_size": 16, "patch_size": 8, "embed_dim": 8, "depth": 2, "num_heads": 2, "num_classes": 0}
    return Backbone(VisionTransformer(**sizes), "tiny", ImageRecipe(resolution=16, resize=16))


def peak_bytes() -> int:
    """Peak memory of this process; getrusage alone may give that of the process that started it."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    status = Path("/proc/self/status")
    own = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return min(peak, int(own[1]) * 1024) if own else peak


def train(n_images: int, n_steps: int, folder: Path, log: Any = print) -> float:
    """Bytes per image that training added at its peak, without the table of images and the features."""

    def opened(backbone: Any, images: Any, root: Any, *, transform: Any, **_: Any) -> Views:
        return MadeUpViews(backbone, images, transform)

    base.open_views = opened  # type: ignore[assignment]
    n_labeled = int(LABELED_SHARE * n_images)
    train_small(folder)  # memory that libraries allocate at their first use does not count
    split = Split(
        made_up_images(n_labeled, "own", N_CLASSES // 2), made_up_images(n_images - n_labeled, "target", None)
    )
    gc.collect()
    before, started = peak_bytes(), time.monotonic()
    weight = np.where(np.arange(n_labeled) % 3 == 0, 0.5, 1.0)
    fitted = method(folder / "large", n_steps).fit(split, weight, weighting="resample")
    fitted.predictions(split.unlabeled).save(folder / "predictions.parquet")
    after = peak_bytes()
    feature_bytes = 4 * fitted.features_.shape[1]
    added = (after - before) / n_images
    log(f"{n_images:,} images, {n_steps} steps, {time.monotonic() - started:.0f} s")
    log(f"peak before {before / 1e6:,.0f} MB (table of images: {split_bytes(split) / n_images:.0f} bytes per image)")
    log(f"peak after {after / 1e6:,.0f} MB: {added:.0f} bytes per image, {feature_bytes} of them features")
    return added - feature_bytes


def split_bytes(split: Split) -> int:
    return int(split.labeled.table.nbytes + split.unlabeled.table.nbytes)


def method(folder: Path, n_steps: int) -> SimGCD:
    settings = {"n_epochs": 1, "n_steps": n_steps, "hidden_dim": 16, "out_dim": 8, "n_warmup": 1, "center": "always"}
    return SimGCD(N_CLASSES, tiny_backbone(), SimGCDConfig().with_settings(settings), folder=folder)


def train_small(folder: Path) -> None:
    split = Split(made_up_images(1000, "first", N_CLASSES // 2), made_up_images(1000, "other", None))
    fitted = method(folder / "small", 2).fit(split)
    fitted.predictions(split.unlabeled).save(folder / "small.parquet")


def main() -> None:
    args = options(__doc__, images=10_000_000, steps=300)
    with TemporaryDirectory() as folder:
        train(args.images, args.steps, Path(folder))


if __name__ == "__main__":
    main()
