"""A finished run without the training: drawn images, features near their class, predictions that are mostly right."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa

from justright.data import gcd_split, glyph_set, merge_pool, random_half
from justright.discovery.doubts import Doubt
from justright.discovery.evidence import expected_right
from justright.discovery.predictions import Predictions, category_names
from justright.evaluation import evaluate
from justright.features.table import FeatureTable
from justright.runs.cluster_table import doubts_json, write_clusters
from justright.runs.run_folder import RunFolder
from justright.runs.selection import Selection, merge_tables, save_selection
from justright.selection import BetaSelector, row_shards

DIM = 16


def make_run(path: Path, per_class: int = 12, scripts=("greek",), seed: int = 0, n_wrong: int = 20) -> RunFolder:
    """Write every file of a run to `path`; `n_wrong` target images lie in a wrong cluster, three look like none."""
    rng = np.random.default_rng(seed)
    images = glyph_set(per_class, scripts, seed, dataset="target").with_ids()
    split, truth = gcd_split(images, random_half(images.classes, seed), seed=seed)
    other = glyph_set(4, ["braille"], seed, dataset="braille").with_ids()
    pool = merge_pool([split.labeled, other])
    folder = RunFolder(path)
    path.mkdir(parents=True, exist_ok=True)
    split.unlabeled.with_content().save(path / "target.parquet")
    pool.images.with_content().save(path / "pool.parquet")
    truth.save(path / "truth.parquet")
    y_true, is_old = truth.open_for_evaluation()

    centers = 0.8 + rng.normal(size=(len(images.classes) + len(pool.origins), DIM)).astype(np.float32)
    order = {label: place for place, label in enumerate(images.classes)}

    def near(rows):
        return (centers[rows] + 0.4 * rng.normal(size=(len(rows), DIM))).astype(np.float32)

    own = {n: order[o.label] for n, o in enumerate(pool.origins) if o.dataset == "target"}
    place_of_pool = np.array([own.get(label, len(order) + label) for label in pool.images.labels])
    target_rows = np.array([order[label] for label in y_true])
    table = pool.images.table
    pool_features = FeatureTable.of(
        near(place_of_pool),
        label=pool.images.labels,
        dataset=table["dataset"].to_pylist(),
        class_name=table["class_name"].to_pylist(),
        id=pool.images.ids,
        path=pool.images.paths,
    ).write(path / "pool.features")
    target = split.unlabeled
    target_features = FeatureTable.of(
        near(target_rows), id=target.ids, path=target.paths, dataset=["target"] * len(target)
    )
    target_features = target_features.write(path / "target.features")
    np.save(path / "tuned.npy", near(target_rows))

    merged = merge_tables([pool_features])
    selector = BetaSelector(domain="affine").fit_stream(merged, row_shards(target_features.features))
    save_selection(path / "weights.parquet", Selection.of("beta", selector, merged), target_features)

    known = [o.name for o in pool.origins if o.dataset == "target"]
    new = {label: len(known) + n for n, label in enumerate(split.classes.new)}
    number = {o.label: n for n, o in enumerate(pool.origins) if o.dataset == "target"} | new
    cluster = np.array([number[label] for label in y_true])
    wrong = rng.choice(len(cluster), n_wrong, replace=False)
    cluster[wrong] = rng.integers(0, len(number), n_wrong)
    confidence = rng.uniform(0.6, 1.0, len(cluster)).astype(np.float32)
    confidence[wrong] = rng.uniform(0.2, 0.7, n_wrong)
    is_neither = np.arange(len(cluster)) < 3
    index = target.table.select(["id", "dataset", "path"])
    predictions = Predictions(index, cluster, confidence, is_neither, category_names(known, len(number)))
    predictions.save(path / "predictions.parquet")
    doubts = [
        Doubt(len(known), None, tuple(np.flatnonzero(cluster == len(known))[:4].tolist())),
        Doubt(len(known) + 1, 0, tuple(np.flatnonzero(cluster == len(known) + 1).tolist())),
    ]
    write_clusters(path / "clusters.csv", predictions, doubts)
    folder.save_json("doubts.json", doubts_json(predictions, doubts))
    evaluate(y_true, cluster, is_old).save(path / "scores.json")

    curve = [[k, 0.9 - abs(k - len(number)) / 100] for k in range(10, 60, 7)]
    estimate = {"n_categories": 24, "interval": [22, 27], "curve": curve, "axes": ["K", "labeled accuracy"]}
    count = {"estimates": {"labeled-search": estimate}, "labeled_classes": len(known), "images": len(target)}
    folder.save_json("count.json", count)
    lines = [
        {"epoch": e, "learning_rate": 0.1 * 0.9**e, "loss": 4 * 0.8**e + 1, "self_contrastive": 3 * 0.8**e + 1,
         "sup_contrastive": 2 * 0.8**e, "classification": 2 * 0.7**e, "distillation": 1.5 * 0.9**e,
         "mean_entropy": 2 + 0.1 * e, "seconds": 1.5}
        for e in range(12)
    ]  # fmt: skip
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    folder.save_about(
        {
            "command": "justright discover --labeled greek --pool braille --target photos --out run",
            "request": {"target": "photos", "pool": "braille", "labeled": "greek"},
            "method": "simgcd",
            "selector": "beta",
            "seed": seed,
            "n_categories": len(number),
            "k_source": "given",
            "answer": "joint",
            "calibrated_on": "how far clusterings agree",
            "expected_right": asdict(expected_right(confidence)),
            "backbone": {"name": "glyph_vit", "fingerprint": "0" * 32},
            "config": {"n_epochs": 12, "batch_size": 128, "learning_rate": 0.1},
            "versions": {"justright": "0.1.0", "torch": "2.13.0", "numpy": np.__version__, "pyarrow": pa.__version__},
            "fingerprints": {name: {"content": letter * 32} for name, letter in (("pool", "a"), ("target", "b"))},
            "seconds": {"extract": 4.2, "select": 0.3, "count": 1.1, "train": 18.0, "predict": 0.4},
        }
    )
    return RunFolder.open(path)
