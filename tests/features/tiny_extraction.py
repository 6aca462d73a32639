"""Drawn images, a tiny backbone that counts its batches, and a call of extract with both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from justright.data.folder import open_folder
from justright.data.transforms import ImageRecipe
from justright.features.backbone import Backbone
from justright.features.extract import extract
from justright.features.guarded_timm import VisionTransformer
from justright.features.store import FILES

N, BATCH = 70, 2  # parts of 32, 32 and 6 images
N_BATCHES = 35
BAD = ["class0/003.png", "class1/064.png", "class2/005.png", "class2/008.png"]
"""The files that the fixture `with_bad` damages."""


class Counting(Backbone):
    """A tiny ViT that counts the batches it sees."""

    n_batches = 0

    def prefix(self, images):
        self.n_batches += len(images) == BATCH  # without the single image that gives the shape
        return super().prefix(images)


def tiny(seed=0, **recipe):
    torch.manual_seed(seed)
    vit = VisionTransformer(img_size=16, patch_size=8, embed_dim=16, depth=2, num_heads=2, num_classes=0)
    return Counting(vit, "tiny", ImageRecipe(**{"resolution": 16, "resize": 18} | recipe))


def draw(root: Path, n=N, seed=0):
    rng = np.random.default_rng(seed)
    for i in range(n):
        place = root / f"class{i % 3}" / f"{i:03}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (20, 24, 3), dtype=np.uint8)).save(place)
    return open_folder(root)


def run(images, out, backbone=None, **options):
    return extract(images, backbone or tiny(), out, **{"batch_size": BATCH, "n_workers": 0} | options)


def contents(store: Path) -> dict[str, bytes]:
    return {name: (store / name).read_bytes() for name in FILES}
