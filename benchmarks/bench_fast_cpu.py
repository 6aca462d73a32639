"""The frozen part of a conv net by torch and by the faster runtime of features/fast_cpu.py, on one core.

Images per CPU second. Both alternate in one process, so that other load affects them equally.
Run: python benchmarks/bench_fast_cpu.py
"""

from __future__ import annotations

from statistics import median

import torch
from measuring import in_turns

from justright.features.backbone import load_backbone

N_ROUNDS, BATCH = 8, 16


def main() -> None:
    torch.set_num_threads(1)
    for side in (160, 224):
        backbone = load_backbone("efficientnet_lite0", img_size=side)
        if backbone.runtime == "torch":
            print("openvino is not installed: pip install 'justright[cpu]'")
            return
        images = torch.rand(BATCH, 3, side, side) * 2 - 1
        calls = {"torch": lambda: backbone._torch_prefix(images), "openvino": lambda: backbone.prefix(images)}  # noqa: B023
        timings = in_turns(calls, N_ROUNDS, n_warmup=1)
        seconds = {name: median(each.cpu for each in runs) for name, runs in timings.items()}
        rates = ", ".join(f"{name} {BATCH / each:.0f} images/s" for name, each in seconds.items())
        results = (timings[name][-1].value for name in calls)
        apart = max(float((a - b).abs().max()) for a, b in zip(*results, strict=True))
        print(f"{side} pixels: {rates}, ratio {seconds['torch'] / seconds['openvino']:.2f}, {apart:.1e} apart")


if __name__ == "__main__":
    main()
