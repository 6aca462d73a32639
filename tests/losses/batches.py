"""Small random batches for the tests of the losses: views x images x dim, and -1 for an unlabeled image."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

HALF = [torch.bfloat16, torch.float16]


class Batch(NamedTuple):
    projections: Tensor
    logits: Tensor
    labels: Tensor
    weight: Tensor


def draw_batch(labels=(0, -1, 1, 0, -1, 1, 2), n_categories=5, dim=6, seed=0, dtype=torch.float64) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    n_images = len(labels)
    projections = torch.randn(2, n_images, dim, generator=generator, dtype=dtype)
    logits = 2 * torch.rand(2, n_images, n_categories, generator=generator, dtype=dtype) - 1  # as wide as cosines
    weight = 3 * torch.rand(n_images, generator=generator, dtype=dtype)
    return Batch(projections, logits, torch.tensor(labels), weight)


def small_batch() -> Batch:
    """For finite differences, which evaluate the loss once for every number."""
    return draw_batch((0, -1, 1, 0), n_categories=3, dim=3)


def unit(row):
    """A list of numbers, scaled to length 1."""
    length = math.sqrt(sum(x * x for x in row))
    return [x / length for x in row]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def softmax(row, temperature):
    exponentials = [math.exp(x / temperature) for x in row]
    return [e / sum(exponentials) for e in exponentials]


def gradient(loss, *inputs):
    """The gradient of `loss(*inputs)` by its first input."""
    first = inputs[0].detach().clone().requires_grad_()
    loss(first, *inputs[1:]).backward()
    return first.grad
