"""Frozen conv nets by torch and by the faster runtime of features/fast_cpu.py, one core, in processor seconds.

Both sides take turns in one process, so that other load on the machine hits them alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from unittest.mock import patch

import torch

from justright.features.backbone import load_backbone
from justright.features.feature_network import FeatureNetwork

ROUNDS, BATCH = 8, 16


def seconds(work: Callable[[torch.Tensor], object], images: torch.Tensor) -> float:
    started = time.process_time()
    work(images)
    return time.process_time() - started


def compare(what: str, slow: Callable, fast: Callable, images: torch.Tensor) -> None:
    slow(images), fast(images)
    pairs = [(seconds(slow, images), seconds(fast, images)) for _ in range(ROUNDS)]
    before, after = (sorted(side)[ROUNDS // 2] for side in zip(*pairs, strict=True))
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
