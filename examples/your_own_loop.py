"""Your own training, our weights: python examples/your_own_loop.py pool/ photos/ [NETWORK [STEPS [CLUSTERS]]]

A plain torch loop over frozen features: a projection learns from a labeled pool, each class with its weight by Beta.
The same two lines change in your own loop (lightly, Lightning, plain torch).
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from justright import BetaSelector, SemiSupKMeans, WeightedSupConLoss, extract, load_backbone, open_images


def main(
    pool: str, photos: str, backbone: str = "efficientnet_lite0", n_steps: int = 200, n_clusters: int = 10
) -> None:
    labeled, target = open_images(pool), open_images(photos).without_labels()
    network = load_backbone(backbone)
    with TemporaryDirectory() as folder:
        known = extract(labeled, network, Path(folder) / "pool")
        features, labels = np.array(known.features), np.array(known.labels)
        unknown = np.array(extract(target, network, Path(folder) / "target").features)

    selector = BetaSelector().fit(features, labels, unknown)
    weight = torch.from_numpy(selector.sample_weight(labels)).float()  # the first line: one weight per image
    weight /= weight.mean()  # so that the learning rate keeps its meaning
    loss = WeightedSupConLoss()  # the second line: a loss that takes it

    torch.manual_seed(0)
    head = torch.nn.Linear(features.shape[1], 128)
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
    inputs, classes = torch.from_numpy(features).float(), torch.from_numpy(labels).long()
    for step in range(n_steps):
        rows = torch.randint(len(inputs), (128,))
        noise = 0.05 * inputs[rows].std() * torch.randn(2, *inputs[rows].shape)  # two views of frozen features
        value = loss(head(inputs[rows] + noise), classes[rows], weight[rows])
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {value.item():.3f}")

    with torch.no_grad():
        projected = head(torch.from_numpy(unknown).float()).numpy()
    found = SemiSupKMeans(n_clusters, seed=0).fit(projected, np.full(len(projected), -1))
    print(f"{len(projected)} photos in clusters of {np.bincount(found.labels_).tolist()}")


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:]))
