"""Glyphs: 872 characters of 29 scripts, drawn by the package itself.

The characters are listed in glyphs.toml, so that the classes do not depend on the installed fonts.

The outline of a character is rasterized once per font, as a soft mask of fixed size. An image is an affine map of that
mask, a threshold that makes strokes thinner or thicker, and a few colors. So text layout, the slow part, runs once.
"""

from __future__ import annotations

import math
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from justright.data.image_set import ImageSet
from justright.data.readers import Reader
from justright.utils.errors import BadImageError, DataError
from justright.utils.seeding import generator
from justright.utils.types import Array


class GlyphClass(NamedTuple):
    """A character as a class: its label, a name safe in file systems, its script and family, and its fonts."""

    label: int
    name: str
    character: str
    script: str
    family: str
    faces: tuple[str, ...]  # the font files that contain every character of the script


def _read_classes() -> Iterator[GlyphClass]:
    table = tomllib.loads(files(__package__).joinpath("glyphs.toml").read_text(encoding="utf-8"))
    label = count()
    for script, family, fonts, characters in table["scripts"]:
        faces = tuple(face for group in fonts.split() for face in table["fonts"][group])
        for character in characters:
            name = f"u{ord(character):04x}-{unicodedata.name(character).lower().replace(' ', '-')}"
            yield GlyphClass(next(label), name, character, script, family, faces)


GLYPH_CLASSES = tuple(_read_classes())
SCRIPTS = tuple(dict.fromkeys(glyph.script for glyph in GLYPH_CLASSES))
_LABELS = {glyph.name: glyph.label for glyph in GLYPH_CLASSES}

Color = tuple[int, int, int]

MASK_SIDE = 64  # longest side of a stored outline, in pixels
PADDING = 4  # empty margin of a mask, so that its blurred edge is not cut
LUMA = (0.299, 0.587, 0.114)  # Rec. 601
MIN_CONTRAST = 0.42  # between ink and paper, of 1; blotches and noise reduce it
N_UNIFORM = 73  # random numbers a look uses, drawn in one call


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
    extent: float  # the longer side of the ink
    place: tuple[float, float]  # from -1, as far left or up as the ink fits, to 1
    rotation: float
    shear: float
    threshold: int
    softness: int
    ink: Color
    paper: Color
    clutter: tuple[Stroke, ...]
    occluder: Stroke | None
    grain: int
    blotches: tuple[int, ...]


def draw_look(rng: np.random.Generator, faces: tuple[str, ...]) -> Look:
    """Draw a random look; always uses N_UNIFORM random numbers."""
    u = rng.random(N_UNIFORM).tolist()
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
        threshold=72 + 4 * int(15 * u[12]),
        softness=32 + 10 * int(8 * u[13]),
        ink=color(ink_luma, u[14], u[15]),
        paper=paper,
        clutter=tuple(_clutter(paper_luma, *u[i : i + 7]) for i in range(16, 16 + 7 * n_clutter, 7)),
        occluder=_occluder(*u[38:45]) if u[37] < 0.4 else None,
        grain=int(4 + 36 * u[45] ** 2),
        blotches=tuple(int(52 * share) - 26 for share in u[46:73]),
    )


def color(luma: float, hue: float, saturation: float) -> Color:
    """The color of a brightness, hue and saturation, each in [0, 1]; the brightness is exact up to rounding."""
    angle = 2 * math.pi * hue
    wheel = [math.cos(angle - 2 * math.pi * k / 3) for k in range(3)]
    gray = sum(share * part for share, part in zip(LUMA, wheel, strict=True))
    tint = [part - gray for part in wheel]
    # how far along the tint no part of the color gets below 0 or above 1
    reach = min((1 - luma) / part if part > 0 else luma / -part for part in tint if part)
    red, green, blue = (round(255 * (luma + saturation * reach * part)) for part in tint)
    return red, green, blue


def _clutter(
    paper_luma: float, x: float, y: float, turn: float, length: float, width: float, shade: float, hue: float
) -> Stroke:
    luma = min(max(paper_luma + 0.24 * (shade - 0.5), 0.0), 1.0)  # close to the paper, far from the ink
    return Stroke(x, y, math.pi * turn, 0.2 + 0.6 * length, 0.02 + 0.08 * width, color(luma, hue, 0.5))


def _occluder(x: float, y: float, turn: float, length: float, width: float, luma: float, hue: float) -> Stroke:
    x, y = 0.3 + 0.4 * x, 0.3 + 0.4 * y  # over the middle, where the glyph is
    return Stroke(x, y, math.pi * turn, 0.4 + 0.6 * length, 0.03 + 0.06 * width, color(luma, hue, 0.7))


def render(look: Look, character: str, grain: UInt8[Array, "size size 3"]) -> UInt8[Array, "size size 3"]:
    """Draw a character; `grain` is random bytes, the noise before it is scaled."""
    size = len(grain)
    paper = bytes(min(max(look.paper[i % 3] + offset, 0), 255) for i, offset in enumerate(look.blotches))
    image = Image.frombytes("RGB", (3, 3), paper).resize((size, size), Image.Resampling.BILINEAR)
    pen = ImageDraw.Draw(image)
    for stroke in look.clutter:
        _draw_stroke(pen, stroke, size)
    corner, outline = _place_outline(look, character, size)
    coverage = outline.tobytes().translate(_coverage_table(look.threshold, look.softness))
    image.paste(look.ink, corner, Image.frombytes("L", outline.size, coverage))
    if look.occluder is not None:
        _draw_stroke(pen, look.occluder, size)
    # whole numbers throughout: fast, and the same bytes on every processor
    pixels = ((grain.astype(np.int16) - 128) * np.int16(look.grain)) >> 7
    pixels += np.asarray(image)
    return pixels.clip(0, 255).astype(np.uint8)


def _draw_stroke(pen: ImageDraw.ImageDraw, stroke: Stroke, size: int) -> None:
    x, y = stroke.x * size, stroke.y * size
    half = 0.5 * stroke.length * size
    dx, dy = half * math.cos(stroke.angle), half * math.sin(stroke.angle)
    pen.line((x - dx, y - dy, x + dx, y + dy), fill=stroke.color, width=max(1, round(stroke.width * size)))


def _place_outline(look: Look, character: str, size: int) -> tuple[tuple[int, int], Image.Image]:
    """The outline scaled, sheared and rotated, and its top left corner in the image."""
    outline = outline_mask(look.face, character)
    width, height = outline.size
    ink_width, ink_height = width - 2 * PADDING, height - 2 * PADDING
    # the map from outline to image without scale, (a b; c d): shear, then rotate
    cos, sin = math.cos(look.rotation), math.sin(look.rotation)
    a, b = cos, cos * look.shear - sin
    c, d = sin, sin * look.shear + cos

    # how far the ink reaches from its center; scale and center keep all of it inside the image
    reach_x = (abs(a) * ink_width + abs(b) * ink_height) / 2
    reach_y = (abs(c) * ink_width + abs(d) * ink_height) / 2
    inside = size / 2 - 1
    scale = min(look.extent * size / max(ink_width, ink_height), inside / max(reach_x, reach_y))
    x = size / 2 + look.place[0] * (inside - scale * reach_x)
    y = size / 2 + look.place[1] * (inside - scale * reach_y)

    # the box around it in the image, with the margin of the outline
    margin = scale * PADDING
    left, right = max(0, math.floor(x - scale * reach_x - margin)), min(size, math.ceil(x + scale * reach_x + margin))
    top, bottom = max(0, math.floor(y - scale * reach_y - margin)), min(size, math.ceil(y + scale * reach_y + margin))

    # PIL needs the inverse map, from a pixel of the box to a point of the outline; shear and rotation keep the area
    inverse_a, inverse_b = d / scale, -b / scale
    inverse_c, inverse_d = -c / scale, a / scale
    shift_x = width / 2 - inverse_a * (x - left) - inverse_b * (y - top)
    shift_y = height / 2 - inverse_c * (x - left) - inverse_d * (y - top)
    placed = outline.transform(
        (right - left, bottom - top),
        Image.Transform.AFFINE,
        (inverse_a, inverse_b, shift_x, inverse_c, inverse_d, shift_y),
        resample=Image.Resampling.BILINEAR,
    )
    return (left, top), placed


@lru_cache(maxsize=256)
def _coverage_table(threshold: int, softness: int) -> bytes:
    """Table from mask value to ink coverage, with the position and softness of the stroke's edge."""
    return bytes(min(max(255 * (value - threshold) // softness + 128, 0), 255) for value in range(256))


@lru_cache(maxsize=8192)  # every font of every class, about 40 MB
def outline_mask(face: str, character: str) -> Image.Image:
    """The soft outline of a character, cropped to its ink, its longest side about MASK_SIDE, plus an empty margin."""
    # sizes come in steps, so that few fonts are open
    left, top, right, bottom = _font(face, 0).getbbox(character)
    font = _font(face, round(4 * math.log2(MASK_SIDE / max(right - left, bottom - top))))
    left, top, right, bottom = font.getbbox(character)
    canvas = Image.new("L", (math.ceil(right - left) + 2 * PADDING, math.ceil(bottom - top) + 2 * PADDING))
    ImageDraw.Draw(canvas).text((PADDING - left, PADDING - top), character, fill=255, font=font)
    ink = canvas.getbbox()  # the font's own box has margins, which would shift and shrink the glyph
    assert ink is not None, f"{face} draws nothing for {character!r}"
    mask = canvas.crop((ink[0] - PADDING, ink[1] - PADDING, ink[2] + PADDING, ink[3] + PADDING))
    return mask.filter(ImageFilter.BoxBlur(1))  # a slope around each edge, for the threshold to move along


@lru_cache(maxsize=256)
def _font(face: str, steps: int) -> ImageFont.FreeTypeFont:
    """A font file opened at MASK_SIDE pixels to the em, or a number of quarter octaves larger."""
    # one character needs no shaping, and every build of Pillow has the basic layout
    size = MASK_SIDE * 2 ** (steps / 4)
    return ImageFont.truetype(font_folder() / f"{face}.ttf", size, layout_engine=ImageFont.Layout.BASIC)


@lru_cache(maxsize=1)
def font_folder() -> Path:
    """The folder of the fonts that matplotlib ships."""
    import matplotlib  # slow to import, so only if something is drawn

    return Path(matplotlib.get_data_path()) / "fonts" / "ttf"


DRAWING_VERSION = 1  # raised when the pixels of (seed, class, index) change; part of the content ids
DEFAULT_SIZE = 64
MIN_SIZE = 16  # smaller glyphs are illegible


def classes_of(*scripts: str) -> tuple[GlyphClass, ...]:
    """The classes of these scripts, in the order of the table."""
    if unknown := sorted(set(scripts) - set(SCRIPTS)):
        raise DataError(f"No glyph script is called {', '.join(unknown)}", expected=f"one of {', '.join(SCRIPTS)}")
    return tuple(glyph for glyph in GLYPH_CLASSES if glyph.script in scripts)


def draw_glyph(seed: int, label: int, index: int, size: int = DEFAULT_SIZE) -> UInt8[Array, "size size 3"]:
    """Image number `index` of a class: a character in a random font, place, slant, weight and color, with noise.

    Seeded by the class name, not by the label, so that the table can grow without changing images.
    """
    if not 0 <= label < len(GLYPH_CLASSES):
        raise DataError(f"There is no glyph class {label}", expected=f"a label from 0 to {len(GLYPH_CLASSES) - 1}")
    if size < MIN_SIZE:
        raise DataError(f"Glyphs cannot be drawn {size} pixels wide", expected=f"a size of at least {MIN_SIZE}")
    glyph = GLYPH_CLASSES[label]
    rng = generator(seed, "glyph", glyph.name, index)
    look = draw_look(rng, glyph.faces)
    grain = np.frombuffer(rng.bytes(size * size * 3), dtype=np.uint8).reshape(size, size, 3)
    return render(look, glyph.character, grain)


class GlyphReader(Reader):
    """Draws the image that a path names: `alphabets/latin/u0061-latin-small-letter-a/7`."""

    def __init__(self, seed: int = 0, size: int = DEFAULT_SIZE):
        self.seed, self.size = seed, size
        self.source = f"glyphs:seed={seed},size={size}"

    def image(self, path: str) -> Image.Image:
        name, _, index = path.rpartition("/")
        label = _LABELS.get(name.rpartition("/")[2])
        if label is None or not index.isdecimal():
            raise BadImageError(f"{path}: not a glyph", expected="family/script/class/index")
        return Image.fromarray(draw_glyph(self.seed, label, int(index), self.size))

    def content(self, path: str) -> bytes:
        return f"{self.source},version={DRAWING_VERSION},{path}".encode()  # determines the drawing

    def saved_as(self, folder: Path) -> str:
        return self.source


def glyph_set(
    per_class: int = 20,
    scripts: Sequence[str] = SCRIPTS,
    seed: int = 0,
    size: int = DEFAULT_SIZE,
    dataset: str = "glyphs",
) -> ImageSet:
    """`per_class` drawn images of every character of these scripts; super-categories are family and script."""
    if per_class < 1:
        raise DataError(f"{per_class} images per class", expected="at least 1")
    glyphs = [glyph for glyph in classes_of(*scripts) for _ in range(per_class)]
    index = list(range(per_class)) * (len(glyphs) // per_class)
    return ImageSet.of(
        GlyphReader(seed, size),
        dataset=dataset,
        path=[f"{g.family}/{g.script}/{g.name}/{i}" for g, i in zip(glyphs, index, strict=True)],
        label=[glyph.label for glyph in glyphs],
        class_name=[glyph.name for glyph in glyphs],
        superclasses=[[glyph.script for glyph in glyphs], [glyph.family for glyph in glyphs]],
    )


def parse_glyphs(options: Path) -> ImageSet:
    """A glyph set from options as text: `per_class=50,seed=1,size=32,scripts=latin+greek`; all are optional."""
    values: dict[str, Any] = {}
    for option in [] if options == Path() else str(options).split(","):
        name, _, value = option.partition("=")
        if name == "scripts":
            values[name] = value.split("+")
        elif name in ("per_class", "seed", "size") and value.isdecimal():
            values[name] = int(value)
        else:
            problem = f"glyphs:{options} cannot be drawn"
            raise DataError(problem, expected="options such as glyphs:per_class=20,seed=0,size=64,scripts=latin+greek")
    return glyph_set(**values)
