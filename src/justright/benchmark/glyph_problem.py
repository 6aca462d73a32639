"""The embedded problem: a target of two alphabets, and a pool from the same alphabets to playing with dots."""

from __future__ import annotations

from dataclasses import dataclass

from justright.data import Pool, Split, Truth, gcd_split, glyph_set, merge_pool, random_half

TARGET_SCRIPTS = ("armenian", "georgian")
"""The embedded backbone has seen neither."""

POOL_SCRIPTS = ("greek", "cyrillic", "phonetic", "arabic", "canadian-syllabics", "operators", "box-drawing", "braille")
"""From alphabets much like the target to what has nothing to do with it."""

OWN = "target"
"""The name of the target's own labeled part in the pool."""


@dataclass(frozen=True)
class GlyphProblem:
    """Labeled pool, unlabeled target, and the truth apart from both."""

    pool: Pool
    split: Split
    truth: Truth

    @property
    def n_target_classes(self) -> int:
        """Old and new categories of the target."""
        return len(self.split.old_classes) + len(self.split.new_classes)

    @property
    def own_classes(self) -> tuple[int, ...]:
        """The classes of the pool that the target has too, by their label in the pool."""
        return tuple(label for label, origin in enumerate(self.pool.origins) if origin.dataset == OWN)


def glyph_problem(per_class: int = 30, pool_per_class: int = 15, seed: int = 0) -> GlyphProblem:
    """Half of the target's characters are old, half of their images labeled; other scripts join the pool."""
    target = glyph_set(per_class, TARGET_SCRIPTS, seed, dataset=OWN)
    split, truth = gcd_split(target, random_half(target.classes, seed), seed=seed)
    others = [glyph_set(pool_per_class, [script], seed, dataset=script) for script in POOL_SCRIPTS]
    pool = merge_pool([split.labeled, *others])
    return GlyphProblem(pool, split.with_labeled(pool.images), truth)
