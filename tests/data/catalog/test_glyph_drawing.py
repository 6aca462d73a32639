"""Looks chosen at random, and what they are drawn as."""

from __future__ import annotations

import hashlib

import numpy as np

from justright.data.catalog.glyph_alphabet import BLOCKS, faces_of
from justright.data.catalog.glyph_drawing import LUMA, MIN_CONTRAST, draw_look, render
from justright.utils.seeding import generator

PAIRS = [(block, character) for block in BLOCKS for character in block.characters]


def test_the_look_of_an_image_is_the_same_on_every_machine():
    # pixels may follow the version of FreeType, what is chosen at random must not
    def rounded(value):
        if isinstance(value, float):
            return round(value, 6)
        return tuple(map(rounded, value)) if isinstance(value, tuple) else value

    looks = [
        draw_look(generator(seed, "glyph", "u0041-latin-capital-letter-a", 0), ("one", "two")) for seed in range(9)
    ]
    text = repr([rounded(tuple(look)) for look in looks])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "02f30f5aaad3de97"


def test_ink_stands_out_from_paper():
    for index in range(300):
        look = draw_look(generator(0, "contrast", index), ("face",))
        contrast = abs(np.dot(LUMA, look.ink) - np.dot(LUMA, look.paper)) / 255
        assert contrast > MIN_CONTRAST - 0.01


def test_the_glyph_is_inside_and_takes_a_fair_part_of_the_image():
    for index in range(200):
        block, character = PAIRS[(index * 37) % len(PAIRS)]
        look = draw_look(generator(0, "inside", index), faces_of(block))
        plain = look._replace(ink=(0, 0, 0), paper=(255, 255, 255), blotches=(0,) * 27, clutter=(), occluder=None)
        is_ink = render(plain, character, np.full((64, 64, 3), 128, dtype=np.uint8))[:, :, 0] < 128
        rim = np.concatenate([is_ink[0], is_ink[-1], is_ink[:, 0], is_ink[:, -1]])
        assert not rim.any()
        assert is_ink.sum() > 40
