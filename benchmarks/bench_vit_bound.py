"""How much faster a frozen ViT could get on a CPU in float32: its step beside its matrix products alone, one thread.

    python benchmarks/bench_vit_bound.py                    ViT-S/14, ViT-B/14, ViT-B/16 and the embedded ViT
    python benchmarks/bench_vit_bound.py dinov2_vits14      only that one

A runtime can spare what lies between the products: copies, norms, softmax, GELU, fresh memory. The products stay. So
they are multiplied alone, into memory that is there, by torch and by numpy, the better of the two counting for each
shape, and those of attention at the best pace of any shape, since small ones are far from it in every library. The time
of the step over that is what no runtime can pass that multiplies no faster than these libraries; openvino shows what
one does. Parameters are random where no checkpoint is embedded: they do not change the time.

All ways take turns in one process. Their quickest rounds are compared, in processor seconds, for other load only adds.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Callable

import numpy as np
import torch
from bench_extract import photos
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from justright.features.backbone import Backbone, load_backbone, random_backbone
from justright.features.extract import BATCH_SIZE
from justright.features.fast_cpu import fast_module
from justright.features.feature_network import FeatureNetwork
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


def backbone_of(name: str) -> Backbone:
    torch.manual_seed(0)
    backbone = load_backbone(name) if name == EMBEDDED else random_backbone(name)
    for parameter_name, parameter in backbone.model.named_parameters():
        if parameter_name.endswith("gamma") and name != EMBEDDED:
            parameter.data.fill_(1.0)  # fresh layer scales are 1e-5, and no difference could show
    return backbone


def products_of(network: FeatureNetwork, images: Tensor) -> tuple[Counter[Shape], float]:
    """The products of layers by their shapes, and the operations of those inside attention, in one step.

    The few of the last block that are written as sums over letters are left out, which can only raise the bound.
    """
    shapes: Counter[Shape] = Counter()
    inside = 0.0

    def saw_layer(layer: nn.Module, _: object, out: Tensor) -> None:
        columns, inner = layer.weight.shape[0], layer.weight[0].numel()
        shapes[out.numel() // columns, inner, columns] += 1

    def saw_attention(attention: Attention, _: object, out: Tensor) -> None:
        nonlocal inside
        n_images, n_tokens, _ = out.shape
        inside += 2 * 2 * n_images * n_tokens**2 * attention.num_heads * attention.head_dim

    hooks = []
    for module in network.backbone.model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            hooks.append(module.register_forward_hook(saw_layer))
        elif isinstance(module, Attention):
            hooks.append(module.register_forward_hook(saw_attention))
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


def seconds(work: Callable[[], object], n_times: int = 1) -> float:
    started = time.process_time()
    for _ in range(n_times):
        work()
    return (time.process_time() - started) / n_times


def quickest(ways: dict[object, tuple[Callable[[], object], int]], n_rounds: int) -> dict[object, float]:
    found: dict[object, list[float]] = {name: [] for name in ways}
    for _ in range(n_rounds + 1):  # the first warms up
        for name, (work, n_times) in ways.items():
            found[name].append(seconds(work, n_times))
    return {name: min(values[1:]) for name, values in found.items()}


def report(name: str, n_rounds: int) -> None:
    backbone = backbone_of(name)
    side = backbone.recipe.resolution
    network = FeatureNetwork(backbone, BATCH_SIZE, "float32", "class")
    images = torch.rand(BATCH_SIZE, 3, side, side) * 2 - 1
    shapes, inside = products_of(network, images)
    fast = fast_module(Whole(backbone), images[:2])

    files = photos(BATCH_SIZE)
    n_steps = max(1, round(ENOUGH / (inside + sum(operations(shape) * n for shape, n in shapes.items()))))
    ways: dict[object, tuple[Callable[[], object], int]] = {"step": (lambda: network(images), n_steps)}
    ways["decode"] = (lambda: [backbone.recipe.preprocess(files.image(row)) for row in range(len(files))], 1)
    if fast is not None:
        ways["openvino"] = (lambda: fast(images), n_steps)
    for shape in shapes:
        for library in ("torch", "numpy"):
            ways[shape, library] = (bare_product(shape, library), max(1, round(ENOUGH / operations(shape))))
    with torch.inference_mode():
        took = quickest(ways, n_rounds)

    best = {shape: min(took[shape, "torch"], took[shape, "numpy"]) for shape in shapes}
    pace = max(operations(shape) / best[shape] for shape in shapes)
    layers = sum(best[shape] * n for shape, n in shapes.items())
    floor = layers + inside / pace
    bound = took["step"] / floor

    def line(what: str, time_of: float, more: str) -> None:
        print(f"  {what:42} {1000 * time_of / BATCH_SIZE:7.2f} ms an image  {more}")

    load = f"load {os.getloadavg()[0]:.1f}"
    print(f"\n{name}, {side} pixels, batches of {BATCH_SIZE}, one thread, best of {n_rounds} rounds, {load}")
    line("decoding and resizing a photo", took["decode"], f"{took['decode'] / took['step']:.0%} of the step")
    line("the step, by torch", took["step"], "")
    line("products of its layers alone", layers, f"{layers / took['step']:.0%}")
    line("products of attention at the best pace", inside / pace, f"{inside / pace / took['step']:.0%}")
    if fast is not None:
        apart = np.abs(fast(images)[0].numpy() - network(images)).max() / np.abs(network(images)).max()
        gain = took["step"] / took["openvino"]
        line("the step, by openvino", took["openvino"], f"{gain:.2f} times, {apart:.0e} apart")
    verdict = "not ruled out by this" if bound >= GOAL else "out of reach"
    print(f"  best pace {pace / 1e9:.0f} GFLOPS, so no more than {bound:.2f} times; {GOAL} times is {verdict}")


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
