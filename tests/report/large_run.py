"""Write a run with thousands of classes and clusters without training, to test limits of size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from justright.data import ImageSet, Truth
from justright.data.readers import FolderReader
from justright.discovery.predictions import Predictions, category_names
from justright.evaluation import evaluate
from justright.features.table import FeatureTable
from justright.runs.run_folder import RunFolder
from justright.runs.selection import Selection, merge_tables, save_selection
from justright.selection import BetaSelector, row_shards

DIM = 8
N_KNOWN = 50
PER_CLASS = 4


def make_large_run(
    path: Path, root: Path, files: Sequence[str], n_images: int = 100_000, n_clusters: int = 2000, n_classes: int = 4500
) -> RunFolder:
    """Write the run; its images are the files below `root`, repeated."""
    rng = np.random.default_rng(0)
    path.mkdir(parents=True, exist_ok=True)
    y = rng.integers(0, n_clusters, n_images)
    labels = np.repeat(np.arange(n_classes), PER_CLASS)
    target = _images(root, files, n_images, "target", label=y, class_name=[f"class {label}" for label in y])
    names = [f"pool/a class with a rather long name {label}" for label in labels]
    pool = _images(root, files, len(labels), "pool", label=labels, class_name=names)
    _save(target.without_labels(), path / "target.parquet")
    _save(pool, path / "pool.parquet")
    Truth(target, tuple(range(n_clusters // 2))).save(path / "truth.parquet")

    centers = 0.8 + rng.normal(size=(n_clusters + n_classes, DIM))

    def near(rows):
        return (centers[rows] + 0.3 * rng.normal(size=(len(rows), DIM))).astype(np.float32)

    pool_features = FeatureTable.of(
        near(n_clusters + labels), label=labels, dataset=["pool"] * len(labels), class_name=names, id=pool.ids
    ).write(path / "pool.features")
    target_features = FeatureTable.of(near(y), id=target.ids).write(path / "target.features")
    np.save(path / "tuned.npy", near(y))
    merged = merge_tables([pool_features])
    selector = BetaSelector(domain="affine").fit_stream(merged, row_shards(target_features.features))
    save_selection(path / "weights.parquet", Selection.of("beta", selector, merged), target_features)

    cluster = np.where(rng.uniform(size=n_images) < 0.1, rng.integers(0, n_clusters, n_images), y)
    confidence = rng.uniform(0.3, 1.0, n_images).astype(np.float32)
    known = [f"pool/known {number}" for number in range(N_KNOWN)]
    index = target.table.select(["id", "dataset", "path"])
    is_neither = np.arange(n_images) < n_images // 100
    Predictions(index, cluster, confidence, is_neither, category_names(known, n_clusters)).save(
        path / "predictions.parquet"
    )
    evaluate(y, cluster, y < n_clusters // 2).save(path / "scores.json")
    folder = RunFolder(path)
    folder.save_about({"method": "simgcd", "selector": "beta", "seed": 0, "n_categories": n_clusters})
    return folder


def _images(root: Path, files: Sequence[str], n: int, dataset: str, **columns) -> ImageSet:
    paths = [files[number % len(files)] for number in range(n)]
    ids = [f"{dataset}-{number}" for number in range(n)]
    return ImageSet.of(FolderReader(root), dataset=dataset, path=paths, id=ids, **columns)


def _save(images: ImageSet, path: Path) -> None:
    """Write the list of images as a run does, but with unknown content: hashing would take long."""
    images.with_content(pa.chunked_array([pa.nulls(len(images), pa.string())])).save(path)
