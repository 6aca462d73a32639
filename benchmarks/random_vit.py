"""ViTs with random parameters, for benchmarks that need no checkpoint."""

from __future__ import annotations

import torch

from justright.features.backbone import Backbone, random_backbone


def random_vit(name: str) -> Backbone:
    """A ViT at 224 pixels with random parameters, always the same ones."""
    torch.manual_seed(0)
    backbone = random_backbone(name, img_size=224)
    for part, parameter in backbone.model.named_parameters():
        if part.endswith("gamma"):
            parameter.data.fill_(1.0)  # fresh layer scales are 1e-5, and the block would do next to nothing
    return backbone
