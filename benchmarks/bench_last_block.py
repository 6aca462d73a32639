"""The last block for the class token alone against the ordinary block: forward and backward, ViT-B/14 shape.

Both sides run in this process, in turns, on the same 64 views of 257 tokens. Run: python benchmarks/bench_last_block.py
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch
from measuring import in_turns, options
from torch import Tensor

from justright.features.cuts import block_inputs, class_token
from justright.features.guarded_timm import Block

GOAL = 20


def gradients(class_tokens: Callable[[], Tensor], block: Block) -> list[Tensor]:
    return list(torch.autograd.grad(class_tokens().pow(2).sum(), list(block.parameters())))


def main() -> None:
    args = options(__doc__, views=64, rounds=5, threads=torch.get_num_threads())
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    block = Block(768, num_heads=12, qkv_bias=True, init_values=1.0)  # DINOv2's, with layer scale
    tokens = torch.randn(args.views, 257, 768)
    stored = block_inputs(block, tokens)
    sides = {"ordinary": lambda: block(tokens)[:, 0], "class token": lambda: class_token(block, *stored)}

    steps = {name: lambda side=side: gradients(side, block) for name, side in sides.items()}
    runs = in_turns(steps, args.rounds, n_unmeasured=1)
    took = {name: statistics.median(each.clock for each in values) for name, values in runs.items()}
    output = (sides["ordinary"]() - sides["class token"]()).abs().max().item()
    pairs = zip(runs["ordinary"][0].value, runs["class token"][0].value, strict=True)
    gradient = max(((other - own).norm() / own.norm()).item() for own, other in pairs)
    ratio = took["ordinary"] / took["class token"]
    print(f"{args.views} views x 257 tokens x 768, {torch.get_num_threads()} threads, median of {args.rounds}")
    for name, value in took.items():
        print(f"  {name:12s} {value * 1e3:9.1f} ms")
    print(f"  largest difference: output {output:.1e}, gradients {gradient:.1e} (relative, per parameter)")
    print(f"  {ratio:.1f} times (goal: at least {GOAL}): {'met' if ratio >= GOAL else 'MISSED'}")


if __name__ == "__main__":
    main()
