"""A problem: what one may learn from, what one wants to understand, and the truth apart from both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from jaxtyping import Int

from justright.data import ImageSet, Pool, Split, Truth, merge_pool
from justright.data.columns import names_column, with_columns
from justright.data.pool import OWN as OWN
from justright.errors import DataError, DegenerateError
from justright.features.table import FeatureTable
from justright.progress import Track, silent
from justright.types import UNLABELED, Array

PoolRole = Literal["guide", "rival"]
# guide: no target image is ever called a class of the pool; rival: classes of the pool are categories too
POOL_ROLES: tuple[str, ...] = get_args(PoolRole)


@dataclass(frozen=True)
class Problem:
    """Labeled images and an unlabeled target. `n_target_classes` is the true K where somebody knows it.

    `pool` holds all labeled images: those of the target's own classes come first, as a data set called `OWN`.
    """

    pool: Pool
    target: ImageSet
    truth: Truth | None = None
    n_target_classes: int | None = None

    @property
    def own_classes(self) -> tuple[int, ...]:
        """The labeled classes that target images may belong to, by their label in the pool."""
        return tuple(label for label, origin in enumerate(self.pool.origins) if origin.dataset == OWN)

    @property
    def own_rows(self) -> Int[Array, " own"]:
        """The rows of the pool that hold the target's own classes."""
        return np.flatnonzero(np.isin(self.pool.images.labels, self.own_classes))

    @property
    def other_rows(self) -> Int[Array, " others"]:
        """The rows of the pool that hold classes of other kinds."""
        return np.flatnonzero(~np.isin(self.pool.images.labels, self.own_classes))

    def split(self, role: PoolRole = "guide") -> Split:
        """What a method may see, and whether classes of other kinds only guide it."""
        others = () if role == "rival" else tuple(set(range(len(self.pool.origins))) - set(self.own_classes))
        return Split(self.pool.images, self.target, guide_classes=others)

    def with_ids_of(self, pool: FeatureTable, target: FeatureTable) -> Problem:
        """The same with the images that could be read when features were extracted, and with the ids found there.

        The truth must fit the target as it is, and gets the ids too: images of two archives may share their paths.
        """
        if self.truth is not None and len(target) != len(self.target):
            raise DataError(
                f"{len(self.target) - len(target):,} images of the target cannot be read",
                advice="leave them out of the target and of the truth; `justright audit` lists them",
            )
        images, unlabeled = _readable(self.pool.images, pool), _readable(self.target, target)
        truth = None if self.truth is None else self.truth.named_by(unlabeled)
        return replace(self, pool=replace(self.pool, images=images), target=unlabeled, truth=truth)

    def without_copies(self, track: Track = silent) -> tuple[Problem, int]:
        """The same without labeled images that are, byte for byte, images of the target; and how many they were.

        With them the label of a target image would reach training. Ids that are computed on the way are kept.
        """
        images, target = self.pool.images, self.target
        # by what the files hold: a list may claim any id
        contents = images.content_ids(track, is_strict=False)
        targets = target.content_ids(track, is_strict=False)
        known = set(targets) - {""}
        rows = np.flatnonzero([each not in known for each in contents])
        if len(images) and not len(rows):
            raise DegenerateError(
                f"all {len(images):,} labeled images are images of the target too",
                expected="labeled images that are not in the target",
                advice="take the labeled images out of the target, or --keep-copies",
            )
        pool = replace(self.pool, images=images.filled_with(contents).take(rows))
        return replace(self, pool=pool, target=target.filled_with(targets)), len(images) - len(rows)


def make_problem(
    pool: Sequence[ImageSet],
    labeled: ImageSet | None,
    target: ImageSet,
    has_labels: bool = False,
    max_per_class: int | None = None,
) -> Problem:
    """Merge the pool; `labeled` are images of the target's own classes.

    With `has_labels` the labels of the target are sealed as truth, and a class is old if `labeled` has one of its name.
    In any case the target goes on without them.
    """
    own = [] if labeled is None else [named(labeled, OWN)]
    merged = merge_pool([*own, *pool], max_per_class=max_per_class)
    if not has_labels:
        return Problem(merged, target.without_labels())
    if (target.labels == UNLABELED).any():
        raise DataError(
            f"{int((target.labels == UNLABELED).sum()):,} images of the target have no label",
            expected="a label for each, to judge by",
            advice="leave the judging out, or give a file with --truth",
        )
    known = set() if labeled is None else set(labeled.classes.values())
    old = tuple(label for label, name in target.classes.items() if name in known)
    return Problem(merged, target.without_labels(), Truth(target, old), len(target.classes))


def named(images: ImageSet, dataset: str) -> ImageSet:
    """The same images as one data set of another name."""
    same = names_column([dataset], np.zeros(len(images), np.int32))
    return ImageSet(with_columns(images.table, {"dataset": same}), images.readers)


def _readable(images: ImageSet, table: FeatureTable) -> ImageSet:
    """The images that have features, in order, with the ids of the table."""
    if len(table) < len(images):
        # by row: images of two sources may share their path, and those of a list their id
        images = images.take(np.setdiff1d(np.arange(len(images)), list(table.bad_rows)))
    if len(images) != len(table):
        raise DataError(
            f"{len(table):,} features for {len(images):,} readable images",
            expected="one each",
            advice=f"delete {table.path}; it is computed again",
        )
    return ImageSet(with_columns(images.table, {"id": table.index["id"]}), images.readers)
