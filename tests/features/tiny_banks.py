"""Banks of views of a few images after a tiny network."""

from __future__ import annotations

import numpy as np
import torch

from justright.data.objects import from_dataset
from justright.data.transforms import ImageRecipe
from justright.features.backbone import Backbone
from justright.features.bank import ViewBank
from justright.features.guarded_timm import timm

RECIPE = ImageRecipe(resolution=16, resize=18)


def noise(n=7):
    pixels = np.random.default_rng(0).integers(0, 256, (n, 20, 24, 3), dtype=np.uint8)
    return from_dataset([(picture, 0) for picture in pixels], "noise")


def tiny(**options):
    sizes = {"img_size": 16, "patch_size": 8, "embed_dim": 12, "depth": 2, "num_heads": 3, "num_classes": 0}
    torch.manual_seed(0)
    return Backbone(timm.create_model("vit_tiny_patch16_224", **sizes | options), "tiny", RECIPE)


def bank_of(root, images=None, backbone=None, **options):
    small = {"n_views": 3, "batch_size": 2, "precision": "float32"}
    return ViewBank(backbone or tiny(), images or noise(), root, **small | options)


ROWS, VIEWS = np.array([5, 0, 3, 5]), np.array([2, 0, 1, 1])
