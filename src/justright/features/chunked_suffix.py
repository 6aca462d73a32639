"""The tuned part of a conv net in a training step on a CPU: views in chunks, each chunk on one core.

All views at once need tensors that are larger than the processor's caches, and cores wait for each other in every
operation. A chunk fits into the caches, forward and backward, and cores wait for each other twice per step. Gradients
are summed in the order of the chunks, so the result does not depend on the number of cores.
"""

from __future__ import annotations

import math
from contextlib import closing
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from justright.features.backbone import Backbone
from justright.features.cuts import LastStageCut, Stored
from justright.features.workers import on_one_core_each, one_core_a_thread

CHUNK = 1600  # cells of feature maps: 32 views of 7 x 7, 64 of 5 x 5. Twice as many are as fast on one core


class _InChunks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, backbone: Backbone, size: int, stored: Stored, *tuned: Tensor) -> Tensor:
        def features(chunk: Stored) -> Tensor:
            with torch.enable_grad():
                return backbone.suffix(chunk)

        chunks = list(zip(*(torch.split(part, size) for part in stored), strict=True))
        ctx.chunks, ctx.tuned, ctx.size = _on_all_cores(features, chunks), tuned, size
        return torch.cat([chunk.detach() for chunk in ctx.chunks])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        def tuned_gradients(pair: tuple[Tensor, Tensor]) -> tuple[Tensor | None, ...]:
            chunk, gradient = pair
            return torch.autograd.grad(chunk, ctx.tuned, gradient, allow_unused=True)

        (gradient,) = gradients
        parts = _on_all_cores(tuned_gradients, list(zip(ctx.chunks, torch.split(gradient, ctx.size), strict=True)))
        ctx.chunks = None
        # parameters that a network does not use in eval mode, such as cached biases of attention, have no gradient
        sums = (None if terms[0] is None else sum(terms[1:], terms[0]) for terms in zip(*parts, strict=True))
        return None, None, None, *sums


def _on_all_cores(work: Any, items: list[Any]) -> list[Any]:
    n_threads = torch.get_num_threads()
    with one_core_a_thread(), closing(on_one_core_each(work, items, n_threads if n_threads > 1 else 0)) as results:
        return list(results)


def chunked_suffix(backbone: Backbone, stored: Stored) -> Float[Tensor, "batch dim"]:
    """`backbone.suffix`: equal up to rounding, and differentiable in the tuned parameters."""
    is_training_on_cpu = (
        backbone.device.type == "cpu" and torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")
    )
    size = max(1, CHUNK // math.prod(stored[0].shape[1:-1]))
    has_chunks = isinstance(backbone.cut, LastStageCut) and len(stored[0]) > size
    tuned = list(backbone.tuned_parameters())
    if not (is_training_on_cpu and has_chunks and tuned):
        return backbone.suffix(stored)
    return _InChunks.apply(backbone, size, stored, *tuned)  # type: ignore[no-untyped-call]
