"""How fast glyphs are drawn: 10,000 by one process, by two, and the plain way for comparison.

    python benchmarks/bench_glyphs.py [n_images]

The plain way chooses the same looks, and lays out and rasterizes the text anew for each image, as most scripts do.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
from measuring import timed
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from justright.data.catalog.glyphs import (
    BLOCKS,
    GLYPH_CLASSES,
    Look,
    Stroke,
    draw_glyph,
    draw_look,
    faces_of,
    font_folder,
)
from justright.utils.seeding import generator

SEED, SIZE = 0, 64
FACES = [faces_of(block) for block in BLOCKS for _ in block.characters]
Job = tuple[int, int]


def draw(jobs: list[Job]) -> None:
    for label, index in jobs:
        draw_glyph(SEED, label, index, SIZE)


def draw_plainly(jobs: list[Job]) -> None:
    for label, index in jobs:
        rng = generator(SEED, "glyph", GLYPH_CLASSES[label].name, index)
        plain_image(draw_look(rng, FACES[label]), GLYPH_CLASSES[label].character, rng)


def plain_image(look: Look, character: str, rng: np.random.Generator) -> np.ndarray:
    ink = Image.new("L", (SIZE, SIZE))
    font = ImageFont.truetype(font_folder() / f"{look.face}.ttf", look.extent * SIZE)
    place = (SIZE * (0.5 + 0.1 * look.place[0]), SIZE * (0.5 + 0.1 * look.place[1]))
    ImageDraw.Draw(ink).text(place, character, fill=255, font=font, anchor="mm")
    shear = (1, look.shear, -look.shear * SIZE / 2, 0, 1, 0)
    ink = ink.transform(ink.size, Image.Transform.AFFINE, shear, resample=Image.Resampling.BILINEAR)
    ink = ink.rotate(math.degrees(look.rotation), resample=Image.Resampling.BILINEAR)
    ink = ink.filter(ImageFilter.MaxFilter(3) if look.threshold < 100 else ImageFilter.BoxBlur(1))
    blotches = np.array(look.blotches).reshape(3, 3, 3)
    nodes = Image.fromarray((look.paper + blotches).clip(0, 255).astype(np.uint8))
    paper = nodes.resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    for stroke in look.clutter:
        plain_stroke(paper, stroke)
    image = Image.composite(Image.new("RGB", paper.size, look.ink), paper, ink)
    if look.occluder is not None:
        plain_stroke(image, look.occluder)
    noisy = np.asarray(image) + rng.uniform(-look.grain, look.grain, (SIZE, SIZE, 3))
    return noisy.clip(0, 255).astype(np.uint8)


def plain_stroke(image: Image.Image, stroke: Stroke) -> None:
    dx, dy = (stroke.length / 2 * f(stroke.angle) for f in (math.cos, math.sin))
    ends = [(SIZE * (stroke.x + sign * dx), SIZE * (stroke.y + sign * dy)) for sign in (-1, 1)]
    ImageDraw.Draw(image).line(ends, fill=stroke.color, width=max(1, round(stroke.width * SIZE)))


def cpu_seconds(jobs: list[Job]) -> float:
    return timed(lambda: draw(jobs)).processor


def told(name: str, n_images: int, work: Callable[[], float]) -> float:
    """Print the rate by the clock, and by the processor time that `work` returns; the clock's rate."""
    clock, _, processor = timed(work)
    rate = n_images / clock
    print(f"{name:22} {rate:7.0f} images/s   {n_images / processor:7.0f} per second of processor time")
    return rate


def main(n_images: int) -> None:
    labels = generator(SEED, "bench").integers(len(GLYPH_CLASSES), size=n_images).tolist()
    jobs = list(zip(labels, range(n_images), strict=True))
    chunks = [jobs[start : start + 250] for start in range(0, n_images, 250)]
    few = jobs[: max(1, n_images // 5)]
    print(f"{n_images} images of {len(GLYPH_CLASSES)} classes, {SIZE} px; cold: no outline is rasterized yet")
    draw([(0, 0)])  # imports
    rates = []
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as two:
        # short jobs first, so that starting the two processes is not what is measured
        list(two.map(cpu_seconds, [[(0, index)] for index in range(8)]))
        for state in ("cold", "warm"):
            rates.append(told(f"one process, {state}", n_images, lambda: cpu_seconds(jobs)))
            rates.append(told(f"two processes, {state}", n_images, lambda: sum(two.map(cpu_seconds, chunks))))
    plain = told("one process, plain", len(few), lambda: timed(lambda: draw_plainly(few)).processor)
    print("times the plain way:", ", ".join(f"{rate / plain:.1f}" for rate in rates))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
