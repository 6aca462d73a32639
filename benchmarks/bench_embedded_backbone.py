"""Accuracy of the embedded backbone on unseen scripts, compared with raw pixels and the untrained ViT.

Half of the images of each held-out character are the reference, the other half the queries. 1-NN by cosine, and a
ridge classifier on standardized features; both in percent. K-means (best of 3, all images) is matched to classes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from justright.clustering import SemiSupKMeans
from justright.data import glyph_set
from justright.evaluation import Counts, match_counts
from justright.features.backbone import Backbone, load_backbone
from justright.features.embedded import ARCHITECTURE, HELD_OUT, RECIPE
from justright.features.guarded_timm import VisionTransformer

PER_CLASS = 20
SEED = 100  # images that no training has drawn


def scores(features: np.ndarray, labels: np.ndarray) -> tuple[float, float, float]:
    """Accuracy of 1-NN, ridge classifier and k-means."""
    is_reference = np.arange(len(labels)) % 2 == 0
    unit = features - features[is_reference].mean(0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True) + 1e-9
    nearest = labels[is_reference][(unit[~is_reference] @ unit[is_reference].T).argmax(1)]
    linear = make_pipeline(StandardScaler(), RidgeClassifier(alpha=100.0))
    linear.fit(features[is_reference], labels[is_reference])
    kmeans = SemiSupKMeans(len(np.unique(labels)), n_init=3).fit(features)
    return (
        float((nearest == labels[~is_reference]).mean()),
        float(linear.score(features[~is_reference], labels[~is_reference])),
        match_counts(Counts.of(labels, kmeans.labels_)).accuracy,
    )


def features_by(backbone: Backbone, pixels: torch.Tensor) -> np.ndarray:
    with torch.inference_mode():
        return torch.cat([backbone(batch) for batch in pixels.split(128)]).numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path)
    options = parser.parse_args()
    images = glyph_set(PER_CLASS, HELD_OUT, seed=SEED)
    pixels = torch.stack([RECIPE.preprocess(images.image(row)) for row in range(len(images))])
    torch.manual_seed(0)
    untrained = Backbone(VisionTransformer(num_classes=0, **ARCHITECTURE), "untrained", RECIPE)
    trained = load_backbone("glyph_vit", options.checkpoint)
    print(f"{len(images.classes)} held-out characters of {', '.join(HELD_OUT)}; {PER_CLASS} images each")
    print(f"{'features':<28}{'1-NN':>8}{'linear':>8}{'k-means':>9}")
    rows = {
        "raw pixels": pixels.flatten(1).numpy(),
        "the same ViT, untrained": features_by(untrained, pixels),
        "glyph_vit": features_by(trained, pixels),
    }
    for name, features in rows.items():
        nearest, linear, kmeans = scores(features.astype(np.float32), images.labels)
        print(f"{name:<28}{100 * nearest:>8.1f}{100 * linear:>8.1f}{100 * kmeans:>9.1f}")


if __name__ == "__main__":
    main()
