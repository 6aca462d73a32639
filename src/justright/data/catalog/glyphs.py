"""Glyphs: a labeled image set that the package draws itself, offline, from fonts that matplotlib ships.

A class is a character. Above it stand its script (latin, hebrew, arrows ...) and the family of the script
(alphabets, right-to-left, technical ...), so labeled data of every degree of similarity can be had. An image is a
pure function of (seed, class, index): any number of them, in any order, in any process.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, UInt8

from justright.data.catalog.glyph_alphabet import BLOCKS, faces_of
from justright.data.catalog.glyph_drawing import draw_look, render
from justright.errors import DataError
from justright.seeding import generator
from justright.types import Array

DRAWING_VERSION = 1  # raised whenever the same (seed, class, index) gives other pixels; what is on disk is keyed by it
DEFAULT_SIZE = 64
MIN_SIZE = 16  # below it most glyphs cannot be read
Numbers = Int[Array, " images"] | Sequence[int]


@dataclass(frozen=True)
class GlyphClass:
    """One character as a class: its label, a name safe in file systems, and the two levels above it."""

    label: int
    name: str
    character: str
    script: str
    family: str


def class_name(character: str) -> str:
    """Code point and Unicode name, e.g. `u0061-latin-small-letter-a`: never changes, sorts by code point."""
    return f"u{ord(character):04x}-{unicodedata.name(character).lower().replace(' ', '-')}"


_ROWS = [(character, block) for block in BLOCKS for character in block.characters]
GLYPH_CLASSES = tuple(
    GlyphClass(label, class_name(character), character, block.script, block.family)
    for label, (character, block) in enumerate(_ROWS)
)
SCRIPTS = tuple(block.script for block in BLOCKS)


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
    character, block = _ROWS[label]
    rng = generator(seed, "glyph", GLYPH_CLASSES[label].name, index)
    look = draw_look(rng, faces_of(block))
    grain = np.frombuffer(rng.bytes(size * size * 3), dtype=np.uint8).reshape(size, size, 3)
    return render(look, character, grain)


def draw_glyphs(seed: int, labels: Numbers, indices: Numbers, size: int = DEFAULT_SIZE) -> UInt8[Array, "images _ _ 3"]:
    """One image for each pair of label and index."""
    images = [draw_glyph(seed, int(label), int(index), size) for label, index in zip(labels, indices, strict=True)]
    return np.stack(images) if images else np.empty((0, size, size, 3), dtype=np.uint8)
