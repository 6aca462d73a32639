"""An upper bound for the speed of a frozen ViT on one CPU core: time of a forward pass over that of its products.

    python benchmarks/bench_vit_bound.py                    ViT-S/14, ViT-B/14, ViT-B/16 and the embedded ViT
    python benchmarks/bench_vit_bound.py dinov2_vits14      only that one

A faster runtime can save copies, norms, softmax, GELU and allocations, but not the matrix products. So the products are
timed alone, into allocated memory, each shape with torch or numpy, whichever is faster; those of attention count at the
highest speed of any shape, because small products are slow in every library. The ratio is the largest speedup that a
runtime with products as fast as these can reach; openvino is timed as an example. Parameters are random unless a
checkpoint is embedded; they do not change the time.

All take turns in one process, in CPU seconds. Ratios are taken within a round, and the median is printed, because other
load slows all of them, though not equally.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable

import numpy as np
import torch
from bench_extract import jpegs
from measuring import in_turns, load, timed
from random_vit import random_vit
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from justright.features.backbone import Backbone, load_backbone
from justright.features.extract import BATCH_SIZE, FeatureNetwork
from justright.features.fast_cpu import fast_module
from justright.features.guarded_timm import Attention

GOAL = 1.3
NAMES = ("dinov2_vits14", "dinov2_vitb14", "dino_vitb16", "glyph_vit")
EMBEDDED = "glyph_vit"
ENOUGH = 2e9  # operations in a timing of one shape, so that the clock's step does not show

Shape = tuple[int, int, int]  # rows x inner times inner x columns


class Whole(nn.Module):
    """Images to features, as one module that can be converted."""

    def __init__(self, backbone: Backbone):
        super().__init__()
        self.cut, self.model = backbone.cut, backbone.model

    def forward(self, images: Tensor) -> Tensor:
        return self.cut.suffix(self.cut.prefix(images))


def products_of(network: FeatureNetwork, images: Tensor) -> tuple[Counter[Shape], float]:
    """The products of layers by their shapes, and the operations of those inside attention, in one step.

    The few of the last block that are written as sums over letters are left out, which can only raise the bound.
    """
    shapes: Counter[Shape] = Counter()
    inside = 0.0

    def count_layer(layer: nn.Module, _: object, out: Tensor) -> None:
        columns, inner = layer.weight.shape[0], layer.weight[0].numel()
        shapes[out.numel() // columns, inner, columns] += 1

    def count_attention(attention: Attention, _: object, out: Tensor) -> None:
        nonlocal inside
        n_images, n_tokens, _ = out.shape
        inside += 2 * 2 * n_images * n_tokens**2 * attention.num_heads * attention.head_dim

    hooks = []
    for module in network.backbone.model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            hooks.append(module.register_forward_hook(count_layer))
        elif isinstance(module, Attention):
            hooks.append(module.register_forward_hook(count_attention))
    network(images)
    for hook in hooks:
        hook.remove()
    return shapes, inside


def operations(shape: Shape) -> float:
    rows, inner, columns = shape
    return 2.0 * rows * inner * columns


def bare_product(shape: Shape, library: str) -> Callable[[], object]:
    rows, inner, columns = shape
    x, weight, out = torch.randn(rows, inner), torch.randn(inner, columns), torch.empty(rows, columns)
    if library == "torch":
        return lambda: torch.mm(x, weight, out=out)
    return lambda: np.matmul(x.numpy(), weight.numpy(), out=out.numpy())


def faster_product(shape: Shape) -> tuple[float, Callable[[], object]]:
    """Operations per second of a shape by the library that is faster at it, and a function that computes it once."""
    products = [bare_product(shape, library) for library in ("torch", "numpy")]
    n_times = max(1, round(ENOUGH / operations(shape)))
    times = [[timed(product, n_times).cpu for product in products] for _ in range(4)][1:]  # the first warms up
    seconds, place = min((min(each), place) for place, each in enumerate(zip(*times, strict=True)))
    return n_times * operations(shape) / seconds, products[place]


def report(name: str, n_rounds: int) -> None:
    backbone = load_backbone(name) if name == EMBEDDED else random_vit(name)
    side = backbone.recipe.resolution
    network = FeatureNetwork(backbone, BATCH_SIZE, "float32", "class")
    images, files = torch.rand(BATCH_SIZE, 3, side, side) * 2 - 1, jpegs(BATCH_SIZE)
    shapes, inside = products_of(network, images)
    fast = fast_module(Whole(backbone), images[:2])
    bare = {shape: faster_product(shape) for shape in shapes}
    in_layers = sum(operations(shape) * n for shape, n in shapes.items())

    def products() -> None:
        for shape, n in shapes.items():
            for _ in range(n):
                bare[shape][1]()

    calls: dict[str, Callable[[], object]] = {"step": lambda: network(images), "products": products}
    calls["decode"] = lambda: [backbone.recipe.preprocess(files.image(row)) for row in range(len(files))]
    if fast is not None:
        calls["openvino"] = lambda: fast(images)
    n_times = max(1, round(ENOUGH / in_layers))
    runs = in_turns(calls, n_rounds, n_warmup=1, n_times=n_times)
    seconds = {what: np.array([each.cpu / n_times for each in own]) for what, own in runs.items()}

    def line(what: str, key: str, more: str = "") -> None:
        print(f"  {what:30} {1000 * np.median(seconds[key]) / BATCH_SIZE:7.2f} ms an image  {more}")

    def over(key: str) -> float:
        return float(np.median(seconds[key] / seconds["step"]))

    print(f"\n{name}, {side} pixels, batches of {BATCH_SIZE}, one thread, median of {n_rounds} rounds, {load()}")
    line("decoding and resizing a photo", "decode")
    line("the step, by torch", "step")
    line("products of its layers alone", "products", f"{over('products'):.0%} of the step")
    if fast is not None:
        apart = np.abs(fast(images)[0].numpy() - network(images)[0]).max() / np.abs(network(images)[0]).max()
        line("the step, by openvino", "openvino", f"{1 / over('openvino'):.2f} times as fast, {apart:.0e} apart")
    # products of attention count at the highest speed of any shape
    best = max(speed for speed, _ in bare.values())
    mean = in_layers / sum(operations(shape) * n / bare[shape][0] for shape, n in shapes.items())
    share = over("products") * (1 + inside / in_layers * mean / best)
    verdict = "not ruled out by this" if share * GOAL <= 1 else "out of reach"
    print(f"  with those of attention at the highest speed {share:.0%}, so at most {1 / share:.2f} times; ", end="")
    print(f"{GOAL} times is {verdict}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        for name in options.names:
            report(name, options.rounds)


if __name__ == "__main__":
    main()
