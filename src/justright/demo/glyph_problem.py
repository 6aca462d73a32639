"""The embedded problem: a target of two alphabets, and a pool from the same alphabets to playing with dots."""

from __future__ import annotations

from justright.data import gcd_split, glyph_set, merge_pool, random_half
from justright.runs.problem import OWN, Problem

TARGET_SCRIPTS = ("armenian", "georgian")
"""The embedded backbone has seen neither."""

POOL_SCRIPTS = ("greek", "cyrillic", "phonetic", "arabic", "canadian-syllabics", "operators", "box-drawing", "braille")
"""From alphabets much like the target to what has nothing to do with it."""


def glyph_problem(per_class: int = 30, pool_per_class: int = 10, seed: int = 0) -> Problem:
    """Half of the target's characters are old, half of their images labeled; other scripts join the pool."""
    target = glyph_set(per_class, TARGET_SCRIPTS, seed, dataset=OWN)
    split, truth = gcd_split(target, random_half(target.classes, seed), seed=seed)
    others = [glyph_set(pool_per_class, [script], seed, dataset=script) for script in POOL_SCRIPTS]
    return Problem(merge_pool([split.labeled, *others]), split.unlabeled, truth, len(target.classes))
