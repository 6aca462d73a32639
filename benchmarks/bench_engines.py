"""Time one streaming selection in this process, in several processes and on Ray, and compare the weights.

Run: PYTHONPATH=src python benchmarks/bench_engines.py
Features are read from files in half precision, as from stores; pool and target have the same number of images. Starting
an engine is timed separately, because it does not depend on the data. Ray is skipped if it is not installed. "default"
is `fit_stream` without an engine.
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np
from measuring import load, options, timed

from justright.selection import BetaSelector, BinsSelector, Selector
from justright.utils.file_rows import row_shards
from justright.utils.parallel import ENGINES, OpenEngine, in_process

BLOCK = 10_000


def write_features(path: Path, n_images: int, dim: int, n_groups: int, seed: int) -> tuple[np.memmap, np.ndarray]:
    rng = np.random.default_rng(seed)
    places = 1 + rng.standard_normal((n_groups, dim), dtype=np.float32)
    groups = rng.integers(0, n_groups, n_images)
    features = np.lib.format.open_memmap(path, "w+", np.float16, (n_images, dim))
    for start in range(0, n_images, BLOCK):
        part = groups[start : start + BLOCK]
        features[start : start + BLOCK] = places[part] + rng.standard_normal((len(part), dim), dtype=np.float32)
    features.flush()
    return np.load(path, mmap_mode="r"), groups


def main() -> None:
    args = options(__doc__, images=100_000, dim=768, classes=1_000, shard_rows=16_384, workers=2)
    selectors: dict[str, Selector] = {
        "beta": BetaSelector(),
        "beta, median": BetaSelector(reduction="median"),
        "bins": BinsSelector(n_clusters=20, discard=False),
    }
    print(
        f"2 x {args.images} features, {args.dim}-d, {args.classes} classes, shards of {args.shard_rows}, "
        f"{args.workers} workers; {load()}"
    )
    with tempfile.TemporaryDirectory() as folder:
        pool, labels = write_features(Path(folder) / "pool.npy", args.images, args.dim, args.classes, seed=1)
        target, _ = write_features(Path(folder) / "target.npy", args.images, args.dim, 20, seed=2)
        labeled = list(zip(row_shards(pool, args.shard_rows), row_shards(labels, args.shard_rows), strict=True))
        unlabeled = row_shards(target, args.shard_rows)
        local: dict[str, np.ndarray] = {}  # the weights of the first engine
        default: dict[str, OpenEngine] = {"default": lambda _: nullcontext(in_process)}
        for name, opened in (dict(ENGINES) | default).items():
            if name == "ray" and importlib.util.find_spec("ray") is None:
                print("ray: not installed")
                continue
            start = time.perf_counter()
            with opened(args.workers) as engine:
                list(engine(abs, range(args.workers)))  # workers start before the measurement
                print(f"{name:10} opened in {time.perf_counter() - start:5.1f} s")
                for what, selector in selectors.items():
                    fit = partial(selector.fit_stream, labeled, unlabeled, engine=engine)
                    seconds, _, fitted = timed(fit)
                    weight = fitted.class_weight_
                    apart = np.abs(weight - local.setdefault(what, weight)).max()
                    print(f"{name:10} {what:13} {seconds:5.1f} s, largest difference to local {apart:.1e}")


if __name__ == "__main__":
    main()
