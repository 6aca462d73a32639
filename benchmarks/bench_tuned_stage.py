"""One training step through the tuned part of EfficientNet-Lite0, forward and backward, in three versions.

"stage": the last stage and the convolution after it, as in timm: all views in one pass, each batch norm a separate
operation, every operation on all threads. "timm": the same for the convolution alone, which is what is tuned here.
"ours": convolution and batch norm in one operation (`normed_conv` in features/cuts.py), views in chunks, each chunk on
one core (features/chunked_suffix.py). The gradients of the last two are compared. All take turns in one process, so
that other load affects them equally; wall-clock and CPU seconds are printed.
Run: python benchmarks/bench_tuned_stage.py
"""

from __future__ import annotations

import numpy as np
import torch
from measuring import in_turns, load, options
from torch import nn

from justright.features.backbone import Backbone, load_backbone
from justright.features.chunked_suffix import chunked_suffix

GOAL, TOLERANCE = 1.5, 1e-4


def undo_fusion(backbone: Backbone) -> None:
    """Convolution and batch norm as two operations, as in timm."""
    backbone.cut.norm, backbone.cut.is_averaged = None, False  # type: ignore[attr-defined]
    backbone.model.bn2.act.inplace = True


def last_stage(backbone: Backbone) -> list[nn.Module]:
    model = backbone.model
    return [model.blocks[-1], model.conv_head, model.bn2]


def main() -> None:
    args = options(__doc__, rounds=5, threads=torch.get_num_threads())
    torch.set_num_threads(args.threads)
    for side, batch in ((160, 64), (224, 64), (224, 128)):
        ours, plain, whole = (load_backbone("efficientnet_lite0", img_size=side) for _ in range(3))
        for each in (plain, whole):
            undo_fusion(each)
        views = ours.prefix(torch.randn(2 * batch, 3, side, side, generator=torch.Generator().manual_seed(0)))
        stage = nn.Sequential(*last_stage(whole)).requires_grad_(True)
        n_channels = stage[0][0].conv_pw.in_channels
        before = torch.randn(2 * batch, n_channels, *views[0].shape[1:3]).to(memory_format=torch.channels_last)
        sides = {
            "stage": (lambda s=stage, x=before: s(x).mean(dim=(2, 3)), list(stage.parameters())),
            "timm": (lambda plain=plain, views=views: plain.suffix(views), list(plain.tuned_parameters())),
            "ours": (lambda ours=ours, views=views: chunked_suffix(ours, views), list(ours.tuned_parameters())),
        }
        steps = {
            name: lambda features=features, tuned=tuned: torch.autograd.grad(features().square().mean(), tuned)
            for name, (features, tuned) in sides.items()
        }
        timings = in_turns(steps, args.rounds, n_warmup=1)
        medians = {n: np.median([(each.wall, each.cpu) for each in runs], axis=0) for n, runs in timings.items()}
        pairs = zip(timings["timm"][-1].value, timings["ours"][-1].value, strict=True)
        apart = max(float((one - other).abs().max() / one.abs().max()) for one, other in pairs)
        seconds = ", ".join(f"{n} {m[0]:.2f} s ({m[1]:.2f} s of CPU)" for n, m in medians.items())
        print(f"{side} pixels, {batch} images x 2 views, {args.threads} threads, {load()}: {seconds}")
        ratio, same = (medians[name][1] / medians["ours"][1] for name in ("stage", "timm"))
        is_met = ratio >= GOAL and apart <= TOLERANCE
        print(
            f"  in CPU time {ratio:.2f} times as fast as the last stage (goal: at least {GOAL}), {same:.2f} times "
            f"on the same work, gradients {apart:.0e} apart: {'met' if is_met else 'MISSED'}"
        )


if __name__ == "__main__":
    main()
