"""A step through the tuned part of a conv net, forward and backward, as timm has it and as training here does it.

As timm has it: all views in one pass, each batch norm an operation of its own, every operation shared by all threads.
Ours: batch norms done by the convolutions before them (features/fused_norms.py), some views at a time, each such chunk
on one core (features/chunked_suffix.py). Both sides take turns in one process, so that other load on the machine hits
them alike; both the seconds of the clock and those of the processor are told. What is trained is the same.
Run: python benchmarks/bench_tuned_stage.py
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import torch
from torch import Tensor

from justright.features.backbone import Backbone, load_backbone
from justright.features.chunked_suffix import chunked_suffix
from justright.features.fused_norms import plain_again
from justright.features.guarded_timm import BatchNormAct2d

GOAL, TOLERANCE = 1.5, 1e-4


def as_timm_has_it(backbone: Backbone) -> Backbone:
    for module in backbone.model.modules():
        if isinstance(module, torch.nn.Conv2d):
            plain_again(module)
        elif isinstance(module, BatchNormAct2d):
            module.__class__ = BatchNormAct2d
    return backbone


def step(features: Callable[[], Tensor], backbone: Backbone) -> tuple[float, float, list[Tensor]]:
    wall, processor = time.perf_counter(), time.process_time()
    gradients = torch.autograd.grad(features().square().mean(), list(backbone.tuned_parameters()))
    return time.perf_counter() - wall, time.process_time() - processor, list(gradients)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for side, batch in ((160, 64), (224, 64), (224, 128)):
        ours, plain = (load_backbone("efficientnet_lite0", img_size=side) for _ in range(2))
        as_timm_has_it(plain)
        views = ours.prefix(torch.randn(2 * batch, 3, side, side, generator=torch.Generator().manual_seed(0)))
        sides = {
            "timm": (plain, lambda plain=plain, views=views: plain.suffix(views)),
            "ours": (ours, lambda ours=ours, views=views: chunked_suffix(ours, views)),
        }
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        found: dict[str, list[Tensor]] = {}
        for number in range(1 + options.rounds):
            for name, (backbone, features) in sides.items():
                *took, found[name] = step(features, backbone)
                if number:
                    times[name].append((took[0], took[1]))
        medians = {n: [sorted(each)[len(each) // 2] for each in zip(*t, strict=True)] for n, t in times.items()}
        pairs = zip(found["timm"], found["ours"], strict=True)
        apart = max(float((one - other).abs().max() / one.abs().max()) for one, other in pairs)
        wall, processor = (before / after for before, after in zip(medians["timm"], medians["ours"], strict=True))
        is_met = processor >= GOAL and apart <= TOLERANCE
        said = ", ".join(f"{n} {m[0]:.2f} s ({m[1]:.2f} of the processor)" for n, m in medians.items())
        print(
            f"{side} pixels, {batch} images x 2 views, {options.threads} threads, load {os.getloadavg()[0]:.1f}: {said}"
        )
        print(
            f"  {wall:.2f} times by the clock, {processor:.2f} by the processor (goal: at least {GOAL}), gradients "
            f"{apart:.0e} apart: {'met' if is_met else 'MISSED'}"
        )


if __name__ == "__main__":
    main()
