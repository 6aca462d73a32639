"""The alphabet: every character is drawn by its fonts, and no two look alike."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

import numpy as np
from fontTools.pens.recordingPen import DecomposingRecordingPen
from fontTools.ttLib import TTFont

from justright.data.catalog.glyph_alphabet import BLOCKS, faces_of
from justright.data.catalog.glyph_drawing import font_folder, outline_mask

PAIRS = [(block, character) for block in BLOCKS for character in block.characters]


@cache
def font(face):
    return TTFont(font_folder() / f"{face}.ttf", lazy=True)


def normalized_outline(face, glyph_name):
    """The outline moved to the origin and scaled to a longest side of 500, so only its shape is left."""
    glyphs = font(face).getGlyphSet()
    pen = DecomposingRecordingPen(glyphs)
    glyphs[glyph_name].draw(pen)
    steps = [(verb, [point for point in points if point is not None]) for verb, points in pen.value]
    points = [point for _, some in steps for point in some]
    if not points:
        return ()
    left, bottom = map(min, zip(*points, strict=True))
    right, top = map(max, zip(*points, strict=True))
    scale = 500 / max(right - left, top - bottom)
    return tuple(
        (verb, *((round((x - left) * scale), round((y - bottom) * scale)) for x, y in some)) for verb, some in steps
    )


@cache
def outlines_by_face():
    """For each font file: the outline of the missing-glyph box, and of each class the font draws."""
    drawn = defaultdict(dict)
    for block, character in PAIRS:
        for face in {"DejaVuSans", *faces_of(block)}:
            name = font(face).getBestCmap().get(ord(character))
            if name is not None:
                drawn[face][character] = normalized_outline(face, name)
    return {face: (normalized_outline(face, ".notdef"), outlines) for face, outlines in drawn.items()}


def test_every_character_is_in_each_of_its_fonts_and_these_are_at_least_two():
    for block, character in PAIRS:
        assert len(faces_of(block)) >= 2
        for face in faces_of(block):
            assert character in outlines_by_face()[face][1], f"{character!r} is not in {face}"


def test_no_character_draws_nothing_or_the_missing_glyph_box():
    for face, (missing, outlines) in outlines_by_face().items():
        for character, outline in outlines.items():
            assert outline, f"{face} draws nothing for {character!r}"
            assert outline != missing, f"{face} draws a box for {character!r}"


def test_no_two_classes_share_an_outline_in_any_font_even_moved_or_scaled():
    for face, (_, outlines) in outlines_by_face().items():
        first = {}
        for character, outline in outlines.items():
            same = first.setdefault(outline, character)
            assert same == character, f"{same!r} and {character!r} are one shape in {face}"


def test_no_two_classes_look_alike_once_cut_to_their_ink():
    masks = np.zeros((len(PAIRS), 80, 80), dtype=np.float32)
    for row, (block, character) in enumerate(PAIRS):
        mask = np.asarray(outline_mask(faces_of(block)[0], character))
        top, left = (80 - mask.shape[0]) // 2, (80 - mask.shape[1]) // 2
        masks[row, top : top + mask.shape[0], left : left + mask.shape[1]] = mask
    flat = masks.reshape(len(PAIRS), -1)
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    likeness = flat @ flat.T - 2 * np.eye(len(flat), dtype=np.float32)
    a, b = np.unravel_index(likeness.argmax(), likeness.shape)
    assert likeness[a, b] < 0.96, f"{PAIRS[a][1]!r} looks like {PAIRS[b][1]!r}"
