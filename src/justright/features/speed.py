"""How quick a network is on this machine, from a second or two of trying it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import torch

from justright.data.image_set import ImageSet
from justright.errors import BadImageError
from justright.features.backbone import Backbone, Stored
from justright.features.chunked_suffix import chunked_suffix
from justright.features.workers import one_core_a_thread
from justright.geometry import evenly_spaced
from justright.parallel import n_cores

BATCH, N_IMAGES = 4, 64
STEP_TIMES = 16  # how many such batches a step sees at once: small ones are slower
N_VIEWS = 2  # views of an image in a step of training


def try_out(backbone: Backbone, images: ImageSet, seconds: float = 2.0) -> tuple[float, float]:
    """Seconds that an image takes from its file to its feature, all cores busy, and in a step of training.

    Half of the time goes to each. Images that cannot be read are passed over; without any the answer is 0 and 0.
    """
    rows = evenly_spaced(len(images), N_IMAGES).tolist()
    batches = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
    stored: Stored = ()

    def extract(turn: int) -> int:
        nonlocal stored
        read = []
        for row in batches[turn % len(batches)]:
            with suppress(BadImageError):
                read.append(backbone.recipe.preprocess(images.image(row)))
        if read:
            stored = backbone.prefix(torch.stack(read).to(backbone.device))
            with torch.no_grad():
                backbone.suffix(stored).cpu()
        return len(read)

    def step(turn: int) -> int:
        chunked_suffix(backbone, many).square().mean().backward()  # type: ignore[no-untyped-call]
        for parameter in backbone.tuned_parameters():
            parameter.grad = None
        return len(many[0])

    with one_core_a_thread():
        image = _seconds_each(extract, seconds / 2)
    if not stored:
        return 0.0, 0.0
    many = tuple(part.repeat(STEP_TIMES, *[1] * (part.ndim - 1)) for part in stored)
    return image / (n_cores() if backbone.device.type == "cpu" else 1), N_VIEWS * _seconds_each(step, seconds / 2)


def _seconds_each(work: Callable[[int], int], seconds: float) -> float:
    """Seconds an image, of the quickest turn, for some have to wait; the first loads and compiles, and is left out."""
    work(0)
    started, best = time.perf_counter(), float("inf")
    for turn in range(1, 1000):
        began = time.perf_counter()
        if n_images := work(turn):
            best = min(best, (time.perf_counter() - began) / n_images)
        if time.perf_counter() - started > seconds:
            break
    return best
