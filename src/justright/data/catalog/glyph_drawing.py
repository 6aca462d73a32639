"""From a character to pixels: choose a look at random, then draw it.

The outline of a character is rasterised once per font, as a soft mask of fixed size. An image is one affine map of
that mask, a threshold that makes the stroke thinner or thicker, and a few colors. Text layout, the slow part, is
never repeated.
"""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from justright.types import Array

Color = tuple[int, int, int]

MASK_SIDE = 72  # longest side of a stored outline; drawn at half to two thirds of it, so little is lost
EM = 112  # size of the rasterised font; most outlines then need no enlarging
PADDING = 4  # empty rim of a mask, so that its blurred edge is not cut
LUMA = (0.299, 0.587, 0.114)  # Rec. 601
MIN_CONTRAST = 0.42  # between ink and paper, of 1; blotches and noise take some of it away
N_UNIFORM = 44  # random numbers a look uses, drawn in one call


class Stroke(NamedTuple):
    """A straight stroke across the image; lengths are shares of the image side."""

    x: float
    y: float
    angle: float
    length: float
    width: float
    color: Color


class Look(NamedTuple):
    """Everything random about one image except its grain; lengths are shares of the image side."""

    face: str
    extent: float
    place: tuple[float, float]
    rotation: float
    shear: float
    threshold: float
    softness: float
    ink: Color
    paper: Color
    blotches: tuple[int, ...]
    clutter: tuple[Stroke, ...]
    occluder: Stroke | None
    grain: int


def draw_look(rng: np.random.Generator, faces: tuple[str, ...]) -> Look:
    """Choose how an image looks. Uses the same count of random numbers whatever it chooses."""
    u = rng.random(N_UNIFORM).tolist()
    blotches = tuple(rng.bytes(27))
    dark = 0.04 + 0.40 * u[0]
    light = dark + MIN_CONTRAST + (0.96 - dark - MIN_CONTRAST) * u[1]
    ink_luma, paper_luma = (dark, light) if u[2] < 0.5 else (light, dark)
    paper = color(paper_luma, u[3], u[4])
    n_clutter = int(4 * u[5])
    return Look(
        face=faces[int(len(faces) * u[6])],
        extent=0.52 + 0.30 * u[7],
        place=(2 * u[8] - 1, 2 * u[9] - 1),
        rotation=0.24 * (2 * u[10] - 1),
        shear=0.22 * (2 * u[11] - 1),
        threshold=0.24 + 0.26 * u[12],
        softness=0.12 + 0.30 * u[13],
        ink=color(ink_luma, u[14], u[15]),
        paper=paper,
        blotches=blotches,
        clutter=tuple(_clutter(paper_luma, *u[i : i + 6]) for i in range(16, 16 + 6 * n_clutter, 6)),
        occluder=_occluder(*u[37:43]) if u[36] < 0.5 else None,
        grain=int(4 + 36 * u[43] ** 2),
    )


def color(luma: float, hue: float, saturation: float) -> Color:
    """The color of a brightness, hue and saturation, each in [0, 1]; the brightness is kept exactly up to rounding."""
    angle = 2 * math.pi * hue
    wheel = [math.cos(angle - 2 * math.pi * k / 3) for k in range(3)]
    gray = sum(share * part for share, part in zip(LUMA, wheel, strict=True))
    tint = [part - gray for part in wheel]
    room = min((1 - luma) / part if part > 0 else luma / -part for part in tint if part)  # to the gamut's edge
    red, green, blue = (round(255 * (luma + saturation * room * part)) for part in tint)
    return red, green, blue


def _clutter(paper_luma: float, x: float, y: float, turn: float, length: float, shade: float, hue: float) -> Stroke:
    luma = min(max(paper_luma + 0.24 * (shade - 0.5), 0.0), 1.0)  # close to the paper, far from the ink
    return Stroke(x, y, math.pi * turn, 0.2 + 0.6 * length, 0.02 + 0.08 * shade, color(luma, hue, 0.5))


def _occluder(x: float, y: float, turn: float, width: float, luma: float, hue: float) -> Stroke:
    return Stroke(
        0.3 + 0.4 * x, 0.3 + 0.4 * y, math.pi * turn, 0.4 + 0.6 * x, 0.03 + 0.06 * width, color(luma, hue, 0.7)
    )


def render(look: Look, character: str, grain: UInt8[Array, "size size 3"]) -> UInt8[Array, "size size 3"]:
    """Draw a look. `grain` is random bytes, the noise before it is scaled."""
    size = len(grain)
    image = _paper(look, size)
    pen = ImageDraw.Draw(image)
    for stroke in look.clutter:
        _draw_stroke(pen, stroke, size)
    image.paste(look.ink, (0, 0, size, size), _ink_mask(look, character, size))
    if look.occluder is not None:
        _draw_stroke(pen, look.occluder, size)
    # whole numbers throughout: the same bytes on every processor
    noise = ((grain.astype(np.int16) - 128) * np.int16(look.grain)) >> 7
    noise += np.asarray(image)
    return noise.clip(0, 255).astype(np.uint8)


def _paper(look: Look, size: int) -> Image.Image:
    nodes = bytes(
        min(max(look.paper[i % 3] + (byte - 128) * 26 // 128, 0), 255) for i, byte in enumerate(look.blotches)
    )
    return Image.frombytes("RGB", (3, 3), nodes).resize((size, size), Image.Resampling.BILINEAR)


def _draw_stroke(pen: ImageDraw.ImageDraw, stroke: Stroke, size: int) -> None:
    dx, dy = 0.5 * stroke.length * math.cos(stroke.angle), 0.5 * stroke.length * math.sin(stroke.angle)
    ends = [((stroke.x + sign * dx) * size, (stroke.y + sign * dy) * size) for sign in (-1, 1)]
    pen.line(ends, fill=stroke.color, width=max(1, round(stroke.width * size)))


def _ink_mask(look: Look, character: str, size: int) -> Image.Image:
    outline = outline_mask(look.face, character)
    width, height = outline.size
    # Forward map: scale, shear, rotate the outline about its center, then move the center to (x, y).
    scale = look.extent * size / MASK_SIDE
    cos, sin = scale * math.cos(look.rotation), scale * math.sin(look.rotation)
    a, b = cos, cos * look.shear - sin
    c, d = sin, sin * look.shear + cos
    # Any place where the whole glyph stays inside the image.
    half_width = (abs(a) * (width - 2 * PADDING) + abs(b) * (height - 2 * PADDING)) / 2
    half_height = (abs(c) * (width - 2 * PADDING) + abs(d) * (height - 2 * PADDING)) / 2
    x = size / 2 + look.place[0] * max(0.0, size / 2 - 1 - half_width)
    y = size / 2 + look.place[1] * max(0.0, size / 2 - 1 - half_height)
    # PIL wants the way back, from a pixel of the image to a point of the outline.
    determinant = a * d - b * c
    ia, ib, ic, id_ = d / determinant, -b / determinant, -c / determinant, a / determinant
    coefficients = (ia, ib, width / 2 - ia * x - ib * y, ic, id_, height / 2 - ic * x - id_ * y)
    soft = outline.transform(
        (size, size), Image.Transform.AFFINE, coefficients, resample=Image.Resampling.BILINEAR
    )
    return soft.point(_ramp(look.threshold, look.softness))


def _ramp(threshold: float, softness: float) -> list[int]:
    """A table from mask value to ink coverage: where the edge of the stroke lies and how sharp it is."""
    low, slope = 255 * (threshold - softness / 2), 1 / softness
    return [min(max(int((value - low) * slope), 0), 255) for value in range(256)]


@lru_cache(maxsize=8192)  # every font of every class, about 50 MB
def outline_mask(face: str, character: str) -> Image.Image:
    """The soft outline of a character, cut to its ink, its longest side MASK_SIDE, plus an empty rim."""
    font = _font(face)
    left, top, right, bottom = font.getbbox(character)
    canvas = Image.new("L", (math.ceil(right - left) + 2, math.ceil(bottom - top) + 2))
    ImageDraw.Draw(canvas).text((1 - left, 1 - top), character, fill=255, font=font)
    box = canvas.getbbox()
    assert box is not None, f"{face} draws nothing for {character!r}"
    scale = MASK_SIDE / max(box[2] - box[0], box[3] - box[1])
    width, height = (max(1, round(scale * (box[i + 2] - box[i]))) for i in (0, 1))
    ink = canvas.resize((width, height), Image.Resampling.BILINEAR, box=box)
    mask = Image.new("L", (width + 2 * PADDING, height + 2 * PADDING))
    mask.paste(ink, (PADDING, PADDING))
    return mask.filter(ImageFilter.BoxBlur(1.5))


@lru_cache(maxsize=32)
def _font(face: str) -> ImageFont.FreeTypeFont:
    # One character needs no shaping, and the basic layout is there in every build of Pillow.
    return ImageFont.truetype(font_folder() / f"{face}.ttf", EM, layout_engine=ImageFont.Layout.BASIC)


@lru_cache(maxsize=1)
def font_folder() -> Path:
    """Where matplotlib keeps the fonts it ships."""
    import matplotlib  # a quarter of a second, so only when something is drawn

    return Path(matplotlib.get_data_path()) / "fonts" / "ttf"
