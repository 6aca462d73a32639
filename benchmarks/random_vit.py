"""A network of the paper's shape without a download: what benchmarks time when parameters do not matter."""

from __future__ import annotations

import torch

from justright.data.recipe import ImageRecipe
from justright.features.backbone import Backbone
from justright.features.guarded_timm import timm


def random_vit_b14() -> Backbone:
    """A ViT-B/14 at 224 pixels with random parameters, always the same ones."""
    torch.manual_seed(0)
    model = timm.create_model("vit_base_patch14_dinov2", img_size=224, num_classes=0)
    for name, parameter in model.named_parameters():
        if name.endswith("gamma"):
            parameter.data.fill_(1.0)  # fresh layer scales are 1e-5, and the block would do next to nothing
    return Backbone(model, "random ViT-B/14", ImageRecipe())
