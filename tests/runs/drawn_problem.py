"""A small problem of drawn letters."""

from __future__ import annotations

from justright.data import gcd_split, glyph_set, merge_pool, random_half
from justright.runs.problem import OWN, Problem


def drawn_problem(n_per_class: int, n_per_other_class: int) -> Problem:
    """Hebrew letters, half of them known, and a pool of other letters."""
    target = glyph_set(n_per_class, ["hebrew"])
    split, truth = gcd_split(target, random_half(target.classes))
    other = glyph_set(n_per_other_class, ["old-italic"], dataset="old-italic")
    pool = merge_pool([split.labeled.named(OWN), other])
    return Problem(pool, split.unlabeled, truth, len(target.classes))
