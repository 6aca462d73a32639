"""Choose labeled data alone: python examples/choose_labeled_data.py pool/ photos/ weights.csv [NETWORK [CLUSTERS]]

pool/ has one folder per labeled class. weights.csv gets one row per class with its weights by Beta and Bins, for your
own training: soft weights multiply the loss of each image, hard weights select classes.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from justright import BetaSelector, BinsSelector, extract, load_backbone, open_images


def main(pool: str, photos: str, out: str, backbone: str = "efficientnet_lite0", n_clusters: int = 10) -> None:
    labeled, target = open_images(pool), open_images(photos).without_labels()
    network = load_backbone(backbone)
    with TemporaryDirectory() as folder:
        pool_features = extract(labeled, network, Path(folder) / "pool")
        target_features = extract(target, network, Path(folder) / "target")
        features = pool_features.features, pool_features.labels, target_features.features
        beta = BetaSelector().fit(*features)
        bins = BinsSelector(n_clusters=n_clusters, seed=0).fit(*features)  # about the number of categories

    with Path(out).open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["class", "beta", "bins", "why beta", "why bins"])
        for place, label in enumerate(beta.classes_.tolist()):
            weights = f"{beta.class_weight_[place]:.4g}", f"{bins.class_weight_[place]:.0f}"
            table.writerow([labeled.classes[label], *weights, beta.reason_[place], bins.reason_[place]])
    kept = int((bins.class_weight_ > 0).sum())
    print(f"Bins keeps {kept} of {len(beta.classes_)} classes; Beta weighs them from "
          f"{beta.class_weight_.min():.2g} to {beta.class_weight_.max():.2g}. Both: {out}")  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:5], *map(int, sys.argv[5:]))
