"""Glyphs: a labeled image set that the package draws itself, offline, from fonts that matplotlib ships.

A class is a character. Above it stand its script (latin, hebrew, arrows ...) and the family of the script
(alphabets, right-to-left, technical ...), so labeled data of every degree of similarity can be had. An image is a
pure function of (seed, class, index): any number of them, in any order, in any process, drawn when it is asked for.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from justright.data.catalog import DataSet
from justright.data.catalog.glyph_alphabet import BLOCKS, faces_of
from justright.data.catalog.glyph_drawing import draw_look, render
from justright.data.image_set import ImageSet
from justright.data.readers import Reader
from justright.utils.errors import BadImageError, DataError
from justright.utils.hashing import hash_bytes
from justright.utils.seeding import generator
from justright.utils.types import Array

DRAWING_VERSION = 1  # raised whenever the same (seed, class, index) gives other pixels; what is on disk is keyed by it
DEFAULT_SIZE = 64
MIN_SIZE = 16  # below it most glyphs cannot be read


@dataclass(frozen=True)
class GlyphClass:
    """One character as a class: its label, a name safe in file systems, the two levels above it, and its fonts."""

    label: int
    name: str
    character: str
    script: str
    family: str
    faces: tuple[str, ...]


def class_name(character: str) -> str:
    """Code point and Unicode name, e.g. `u0061-latin-small-letter-a`: never changes, sorts by code point."""
    return f"u{ord(character):04x}-{unicodedata.name(character).lower().replace(' ', '-')}"


GLYPH_CLASSES = tuple(
    GlyphClass(label, class_name(character), character, block.script, block.family, faces_of(block))
    for label, (character, block) in enumerate((each, block) for block in BLOCKS for each in block.characters)
)
SCRIPTS = tuple(block.script for block in BLOCKS)
_LABELS = {glyph.name: glyph.label for glyph in GLYPH_CLASSES}


def classes_of(*scripts: str) -> tuple[GlyphClass, ...]:
    """The classes of the scripts named, in the order of the table."""
    if unknown := sorted(set(scripts) - set(SCRIPTS)):
        raise DataError(f"No glyph script is called {', '.join(unknown)}", expected=f"one of {', '.join(SCRIPTS)}")
    return tuple(glyph for glyph in GLYPH_CLASSES if glyph.script in scripts)


def draw_glyph(seed: int, label: int, index: int, size: int = DEFAULT_SIZE) -> UInt8[Array, "size size 3"]:
    """Image number `index` of a class: a character in a random font, place, slant, weight and color, with noise.

    Keyed by the name of the class, not by its label, so the table may grow without changing an image.
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
        """Draw the image that a path names."""
        name, _, index = path.rpartition("/")
        label = _LABELS.get(name.rpartition("/")[2])
        if label is None or not index.isdecimal():
            raise BadImageError(f"{path}: names no glyph", expected="family/script/class/index")
        return Image.fromarray(draw_glyph(self.seed, label, int(index), self.size))

    def content_id(self, path: str) -> str:
        """Made of what determines the drawing, so nothing has to be drawn."""
        return hash_bytes(f"{self.source},version={DRAWING_VERSION},{path}".encode())

    def saved_as(self, folder: Path) -> str:
        """The recipe is all there is to save."""
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
        raise DataError(f"{per_class} images a class", expected="at least 1")
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
    """A glyph set from options in words: `per_class=50,seed=1,size=32,scripts=latin+greek`; none gives the default."""
    words = [] if options == Path() else str(options).split(",")
    given = dict(word.partition("=")[::2] for word in words)
    scripts = given.pop("scripts", "+".join(SCRIPTS)).split("+")
    if not (set(given) <= {"per_class", "seed", "size"} and all(value.isdecimal() for value in given.values())):
        problem = f"glyphs:{options} cannot be drawn"
        raise DataError(problem, expected="options such as glyphs:per_class=20,seed=0,size=64,scripts=latin+greek")
    numbers: dict[str, Any] = {name: int(value) for name, value in given.items()}
    return glyph_set(scripts=scripts, **numbers)


DATA_SET = DataSet(
    title="Glyphs, drawn by justright",
    loader=parse_glyphs,
    licence="free: drawn here from the DejaVu and STIX fonts",
    where="inside the package; justright data glyphs --out DIR writes it as files",
    layout="none, nothing is read",
)
