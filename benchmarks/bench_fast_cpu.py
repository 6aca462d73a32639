"""Frozen conv nets by torch and by the faster runtime of features/fast_cpu.py, one core, in processor seconds.

Both alternate in one process, so that other load affects them equally.
"""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import torch
from measuring import in_turns

from justright.features.backbone import load_backbone
from justright.features.extract import FeatureNetwork

ROUNDS, BATCH = 8, 16


def compare(what: str, slow: Callable, fast: Callable, images: torch.Tensor) -> None:
    took = in_turns({"slow": lambda: slow(images), "fast": lambda: fast(images)}, ROUNDS, n_unmeasured=1)
    before, after = (sorted(each.processor for each in side)[ROUNDS // 2] for side in took.values())
    rates = f"{BATCH / before:.0f} images/s by torch, {BATCH / after:.0f} by openvino"
    print(f"{what}, {images.shape[-1]} pixels: {rates}, ratio {before / after:.2f}")


def main() -> None:
    torch.set_num_threads(1)
    for side in (160, 224):
        backbone = load_backbone("efficientnet_lite0", img_size=side)
        if backbone.runtime == "torch":
            print("openvino is not installed: pip install 'justright[cpu]'")
            return
        images = torch.rand(BATCH, 3, side, side) * 2 - 1
        compare("bank", backbone._torch_prefix, backbone.prefix, images)
        fast = FeatureNetwork(backbone, BATCH, "float32", "class")
        with patch.object(FeatureNetwork, "_fast_suffix", lambda network: None):
            slow = FeatureNetwork(backbone, BATCH, "float32", "class")
        slow._fast_suffix = lambda: None  # type: ignore[method-assign]
        compare("features", slow, fast, images)
        print(f"  largest difference of features {abs(fast(images) - slow(images)).max():.1e}")


if __name__ == "__main__":
    main()
