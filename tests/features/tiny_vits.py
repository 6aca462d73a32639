"""Tiny ViTs of every kind that is cut differently."""

from __future__ import annotations

import torch

from justright.data.transforms import ImageRecipe
from justright.features.guarded_timm import timm

SMALL = ImageRecipe(resolution=32, resize=36)


def tiny(**options):
    """A tiny random ViT; no parameter has a trivial value."""
    sizes = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 3, "num_heads": 3, "num_classes": 0}
    torch.manual_seed(0)
    model = timm.create_model("vit_tiny_patch16_224", **sizes | options).eval()
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            torch.nn.init.normal_(parameter, mean=1.0 if "norm" in name or "ls" in name else 0.0, std=0.3)
    return model


MODELS = {
    "plain ViT": {},
    "registers and layer scale, as DINOv2": {"reg_tokens": 4, "no_embed_class": True, "init_values": 1.0},
    "norm before the blocks, as CLIP": {"pre_norm": True},
    "q/k norm": {"qk_norm": True},
    "average pooling": {"global_pool": "avg", "class_token": False},
    "attention pooling": {"global_pool": "map"},
}
EXACT = list(MODELS)[:3]
