"""The last block for the class token alone against the ordinary block: forward and backward, ViT-B/14 shape.

Both sides run in this process, in turns, on the same 64 views of 257 tokens. Run: python benchmarks/bench_last_block.py
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from justright.features.guarded_timm import Block
from justright.features.last_block import block_inputs, class_token

GOAL = 20


def seconds(step: Callable[[], Tensor], block: Block) -> float:
    block.zero_grad(set_to_none=True)
    start = time.perf_counter()
    step().pow(2).sum().backward()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--views", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    block = Block(768, num_heads=12, qkv_bias=True, init_values=1.0)  # DINOv2's, with layer scale
    tokens = torch.randn(options.views, 257, 768)
    stored = block_inputs(block, tokens)
    sides = {"ordinary": lambda: block(tokens)[:, 0], "class token": lambda: class_token(block, *stored)}

    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(options.rounds + 1):  # in turns, so that a busy machine is busy for both; the first warms up
        for name, step in sides.items():
            times[name].append(seconds(step, block))
    took = {name: statistics.median(values[1:]) for name, values in times.items()}

    grads = {}
    for name, step in sides.items():
        seconds(step, block)
        grads[name] = {parameter: value.grad.clone() for parameter, value in block.named_parameters()}
    output = (sides["ordinary"]() - sides["class token"]()).abs().max().item()
    gradient = max(
        ((grads["class token"][name] - grad).norm() / grad.norm()).item() for name, grad in grads["ordinary"].items()
    )
    ratio = took["ordinary"] / took["class token"]
    print(f"{options.views} views x 257 tokens x 768, {torch.get_num_threads()} threads, median of {options.rounds}")
    for name, value in took.items():
        print(f"  {name:12s} {value * 1e3:9.1f} ms")
    print(f"  largest difference: output {output:.1e}, gradients {gradient:.1e} (relative, per parameter)")
    print(f"  {ratio:.1f} times (goal: at least {GOAL}): {'met' if ratio >= GOAL else 'MISSED'}")


if __name__ == "__main__":
    main()
