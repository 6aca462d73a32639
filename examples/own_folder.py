"""From a folder of photos to clusters: python examples/own_folder.py labeled/ photos/ found.csv [NETWORK [EPOCHS]]

labeled/ has one folder per known class. found.csv gets one row per photo: a known class or a new cluster, and its
confidence. `justright.discover` does the same and more; this example shows the single steps.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from justright import CombinedCounter, SimGCD, Split, extract, load_backbone, open_images


def main(labeled: str, photos: str, out: str, backbone: str = "efficientnet_lite0", epochs: int | None = None) -> None:
    known, target = open_images(labeled), open_images(photos).without_labels()
    network = load_backbone(backbone)

    with TemporaryDirectory() as folder:  # name a folder of your own to keep the features
        known_features = extract(known, network, Path(folder) / "known").features
        target_features = extract(target, network, Path(folder) / "target").features
        features = np.concatenate([known_features, target_features])
    labels = np.concatenate([known.labels, np.full(len(target), -1)])  # -1: unlabeled
    counter = CombinedCounter(seed=0).fit(features, labels)
    print(f"{len(known.classes)} known classes, about {counter.n_categories_} categories in all")

    config = SimGCD.config_class().small().with_settings({"n_epochs": epochs})  # light enough for a CPU
    method = SimGCD(counter.n_categories_, network, config, seed=0).fit(Split(known, target))
    found = method.predictions(target)
    found.save(Path(out))
    for cluster, n in Counter(found.cluster.tolist()).most_common(10):
        category = found.categories[cluster]
        print(f"{category.name:20} {category.kind:10} {n} photos")


if __name__ == "__main__":
    main(*sys.argv[1:5], *map(int, sys.argv[5:]))
