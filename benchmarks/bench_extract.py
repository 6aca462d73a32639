"""Time extraction against a plain DataLoader loop with the same network, and measure memory for more images.

    python benchmarks/bench_extract.py            both
    python benchmarks/bench_extract.py speed      only images per second
    python benchmarks/bench_extract.py memory     only peak memory for 10,000 and 100,000 images

The versions take turns, and ratios are taken within a round, so that other load affects all of them. It does not affect
them equally: cores that wait for each other at every operation lose most. CPU seconds per image are more reliable.
Leave OMP_WAIT_POLICY unset: `passive` slows the plain loop down, and the ratio would look too good.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from measuring import blurred_noise, load, peak_mb
from torch.utils.data import DataLoader, Dataset

from justright.data.image_set import ImageSet
from justright.data.objects import from_dataset
from justright.data.transforms import ImageRecipe
from justright.features.backbone import Backbone, load_backbone
from justright.features.extract import BATCH_SIZE, extract
from justright.features.guarded_timm import VisionTransformer, timm

TARGET = 1.3
SIZES = (10_000, 100_000)
N_CORES = len(os.sched_getaffinity(0))


class Plain(Dataset):
    """The usual data set: decode, transform, collate."""

    def __init__(self, images: ImageSet, recipe: ImageRecipe):
        self.images, self.recipe = images, recipe

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> torch.Tensor:
        return self.recipe.preprocess(self.images.image(row))


def plain_loop(images: ImageSet, backbone: Backbone, n_workers: int) -> np.ndarray:
    loader = DataLoader(Plain(images, backbone.recipe), batch_size=BATCH_SIZE, num_workers=n_workers)
    with torch.no_grad():
        return np.concatenate([backbone.model(batch).numpy() for batch in loader])


def ours(images: ImageSet, backbone: Backbone) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        return np.array(extract(images, backbone, Path(folder) / "features").features)


def plain_at_best(images: ImageSet, backbone: Backbone) -> float:
    """Milliseconds per image if the plain loop never waited: decoding on one core, the network on all without loss."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    start = cpu_seconds()
    batches = list(DataLoader(Plain(images, backbone.recipe), batch_size=BATCH_SIZE))
    decoded = cpu_seconds()
    with torch.no_grad():
        for batch in batches:
            backbone.model(batch)
    computed = cpu_seconds()
    torch.set_num_threads(n_threads)
    return 1000 * (decoded - start + (computed - decoded) / N_CORES) / len(images)


def cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def jpegs(n: int) -> ImageSet:
    """Blurred noise as JPEGs of 500 x 375 pixels."""
    rng = np.random.default_rng(0)

    def jpeg() -> bytes:
        buffer = io.BytesIO()
        blurred_noise(rng, (12, 16), (500, 375)).save(buffer, "JPEG")
        return buffer.getvalue()

    return from_dataset([(jpeg(), 0) for _ in range(n)], "noise")


def networks() -> list[tuple[Backbone, int]]:
    """A conv net and two ViTs, each with the number of images a round."""
    torch.manual_seed(0)
    small = timm.create_model("vit_small_patch16_224", pretrained=False, num_classes=0, img_size=64)
    glyph = VisionTransformer(img_size=64, patch_size=8, embed_dim=128, depth=4, num_heads=4, num_classes=0)
    return [
        (load_backbone("efficientnet_lite0"), 768),  # enough that the last batches of two workers matter little
        (Backbone(small, "vit_small at 64 px", ImageRecipe(64, 72)), 1536),
        (Backbone(glyph, "glyph-shaped ViT at 64 px", ImageRecipe(64, 64)), 2048),
    ]


def speed(n_rounds: int) -> None:
    if os.environ.get("OMP_WAIT_POLICY"):
        print(f"OMP_WAIT_POLICY is {os.environ['OMP_WAIT_POLICY']}: the plain loop is slower than usual")
    for backbone, n in networks():
        images = jpegs(n)
        calls = {
            "DataLoader, num_workers=0": lambda b=backbone, i=images: plain_loop(i, b, 0),
            "DataLoader, num_workers=2": lambda b=backbone, i=images: plain_loop(i, b, 2),
            "justright extract": lambda b=backbone, i=images: ours(i, b),
        }
        rates: dict[str, list[float]] = {name: [] for name in calls}
        costs: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(n_rounds):
            results = []
            for name, call in calls.items():
                wall, cpu = time.perf_counter(), cpu_seconds()
                results.append(call())
                rates[name].append(len(images) / (time.perf_counter() - wall))
                costs[name].append(1000 * (cpu_seconds() - cpu) / len(images))
            np.testing.assert_allclose(results[0], results[-1], rtol=1e-2, atol=1e-3)
        print(f"\n{backbone.name}, {len(images)} images of {images.datasets[0]}, {load()}")
        for name, values in rates.items():
            gains = [mine / other for mine, other in zip(rates["justright extract"], values, strict=True)]
            rate, cost, gain = (statistics.median(each) for each in (values, costs[name], gains))
            print(f"  {name:27} {rate:7.1f} images/s, {cost:6.1f} ms of CPU per image, ours is {gain:.2f} times")
        best, mine = plain_at_best(images, backbone), statistics.median(costs["justright extract"]) / N_CORES
        print(f"  {N_CORES} idle cores, from CPU time: plain loop at best {best:.1f} ms per image, ours {mine:.1f}")
    print(f"\ntarget: at least {TARGET} times the plain loop")


class Shades:
    """Tiny images, generated when they are read."""

    def __init__(self, n: int):
        self.n = n
        self.targets = [0] * n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, row: int) -> tuple[np.ndarray, int]:
        return np.random.default_rng(row).integers(0, 256, (8, 8, 3), dtype=np.uint8), 0


def peak_of(n: int) -> None:
    """Extract `n` tiny images and print the peak of this process in MB."""
    vit = VisionTransformer(img_size=8, patch_size=8, embed_dim=32, depth=1, num_heads=1, num_classes=0)
    with tempfile.TemporaryDirectory() as folder:
        images = from_dataset(Shades(n), "shades")
        extract(images, Backbone(vit, "tiny", ImageRecipe(8, 8)), Path(folder) / "f", batch_size=256)
    print(peak_mb())


def memory() -> None:
    peaks = []
    for n in SIZES:
        start = time.perf_counter()
        out = subprocess.run(
            [sys.executable, __file__, "--peak-of", str(n)], capture_output=True, text=True, check=True
        )
        peaks.append(float(out.stdout))
        print(f"{n:7,} images: peak {peaks[-1]:.0f} MB, {n / (time.perf_counter() - start):,.0f} images/s with start")
    print(f"growth from {SIZES[0]:,} to {SIZES[1]:,}: {peaks[1] - peaks[0]:.0f} MB ({peaks[1] / peaks[0]:.2f} times)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("speed", "memory"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peak-of", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak_of:
        peak_of(options.peak_of)
        return
    if options.what != "memory":
        speed(options.rounds)
    if options.what != "speed":
        memory()


if __name__ == "__main__":
    main()
