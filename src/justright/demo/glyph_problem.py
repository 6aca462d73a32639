"""The problem of the demo: a target of two drawn alphabets, and pools of other scripts from much like it to dots."""

from __future__ import annotations

from dataclasses import replace

from justright.data import gcd_split, glyph_set, merge_pool, random_half
from justright.runs.problem import OWN, Problem

TARGET_SCRIPTS = ("armenian", "georgian")
"""The embedded backbone has seen neither."""

POOL_SCRIPTS = ("greek", "cyrillic", "phonetic", "arabic", "canadian-syllabics", "operators", "box-drawing", "braille")
"""From alphabets much like the target to what has nothing to do with it."""

LABELED_SETS = {
    "similar": ("greek", "cyrillic"),
    "medium": ("arabic", "canadian-syllabics"),
    "dissimilar": ("operators", "arrows"),
    "out of domain": ("braille", "box-drawing"),
}
"""From other alphabets, over letters of another make and symbols, to dots and lines. Chosen by kind, not by result."""

CLASSES_A_SET = 40
"""Sets of one size, so that only their kind differs."""


def glyph_problem(per_class: int = 30, pool_per_class: int = 10, seed: int = 0) -> Problem:
    """Half of the target's characters are old, half of their images labeled; other scripts join the pool."""
    target = glyph_set(per_class, TARGET_SCRIPTS, seed, dataset=OWN)
    split, truth = gcd_split(target, random_half(target.classes, seed), seed=seed)
    others = [glyph_set(pool_per_class, [script], seed, dataset=script) for script in POOL_SCRIPTS]
    return Problem(merge_pool([split.labeled, *others]), split.unlabeled, truth, len(target.classes))


def with_labeled_set(problem: Problem, scripts: tuple[str, ...], seed: int = 0) -> Problem:
    """The same target, all of whose categories are now new, with one labeled set of a given kind."""
    images = glyph_set(15, scripts, seed)
    chosen = images.of_classes(sorted(images.classes)[:: max(1, len(images.classes) // CLASSES_A_SET)][:CLASSES_A_SET])
    assert problem.truth is not None, "the embedded problem has a truth"
    return replace(problem, pool=merge_pool([chosen]), truth=problem.truth.with_old(()))
