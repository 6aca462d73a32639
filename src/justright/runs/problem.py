"""A problem: labeled images, an unlabeled target, and the true labels kept apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Int

from justright.data import ImageSet, Pool, Split, Truth, merge_pool
from justright.data.columns import column
from justright.data.pool import OWN as OWN
from justright.features.table import FeatureTable
from justright.utils.errors import DataError, DegenerateError
from justright.utils.types import UNLABELED, Array

REVIEWED = "reviewed"  # in the column `split`: labeled images that were confirmed in a review, cluster by cluster
PoolRole = Literal["guide", "rival"]
# guide: no target image is assigned to a class of the pool; rival: classes of the pool are categories too
POOL_ROLES: tuple[str, ...] = get_args(PoolRole)


class Copies(NamedTuple):
    """Labeled images that are, byte for byte, images of the target."""

    n_given: int  # images of the target that keep the label that they have among the labeled images
    n_left_out: int  # labeled images that were left out
    notes: Sequence[str] = ()  # what was done, without the final period


@dataclass(frozen=True)
class Problem:
    """Labeled images and an unlabeled target. `n_target_classes` is the true K, if known.

    `pool` holds all labeled images: those of the target's own classes come first, as a data set called `OWN`.
    """

    pool: Pool
    target: ImageSet
    truth: Truth | None = None
    n_target_classes: int | None = None
    given: Mapping[str, int] = field(default_factory=dict)  # labels of target images, by content: `with_given_labels`

    @property
    def own_classes(self) -> tuple[int, ...]:
        """The labeled classes that target images may belong to, by their label in the pool."""
        return tuple(label for label, origin in enumerate(self.pool.origins) if origin.dataset == OWN)

    @property
    def is_own(self) -> Bool[Array, " pool"]:
        """Whether each row of the pool is of the target's own classes."""
        return np.isin(self.pool.images.labels, self.own_classes)

    @property
    def own_rows(self) -> Int[Array, " own"]:
        """The rows of the pool that hold the target's own classes."""
        return np.flatnonzero(self.is_own)

    @property
    def other_rows(self) -> Int[Array, " others"]:
        """The rows of the pool that hold classes of other kinds."""
        return np.flatnonzero(~self.is_own)

    def split(self, role: PoolRole = "guide") -> Split:
        """The part that a method may see. As guides, classes of other kinds are no categories."""
        others = () if role == "rival" else tuple(set(range(len(self.pool.origins))) - set(self.own_classes))
        return Split(self.pool.images, self.target, guide_classes=others, given=self.given)

    def with_ids_of(self, pool: FeatureTable, target: FeatureTable) -> Problem:
        """Keep the readable images, with the ids of the feature tables.

        The truth gets the same ids, because images of two archives may share their paths.
        """
        if self.truth is not None and len(target) != len(self.target):
            raise DataError(
                f"{len(self.target) - len(target):,} images of the target cannot be read",
                advice="leave them out of the target and of the truth; `justright audit` lists them",
            )
        images, unlabeled = _readable(self.pool.images, pool), _readable(self.target, target)
        truth = None if self.truth is None else self.truth.named_by(unlabeled)
        return replace(self, pool=replace(self.pool, images=images), target=unlabeled, truth=truth)

    def given_rows(self) -> Int[Array, " given"]:
        """The rows of the target whose label was given."""
        return np.flatnonzero(_is_in(self.target, self.given)) if self.given else np.zeros(0, dtype=np.int64)

    def is_given_too(self) -> Bool[Array, " pool"]:
        """Whether each row of the pool is an image of the target that was given a label."""
        return self.is_own & _is_in(self.pool.images, self.given)

    def is_reviewed(self) -> Bool[Array, " pool"]:
        """Whether each row of the pool was confirmed in a review."""
        column = self.pool.images.table["split"].cast(pa.string())
        return np.asarray(pc.equal(column, REVIEWED).fill_null(False).to_numpy())

    def rows_of_target(self, rows: Iterable[int]) -> Int[Array, " copies"]:
        """The rows of the target with the same content as these rows of the pool."""
        contents = set(self.pool.images.take(sorted(rows)).content_ids(is_strict=False))
        return np.flatnonzero(_is_in(self.target, contents))

    def with_given_labels(self, labeled: ImageSet | None = None) -> tuple[Problem, Copies]:
        """Label the target images that are, byte for byte, labeled images; returns the problem and a summary.

        Copies among the images of other kinds are left out, because no target image belongs to their classes. Copies
        with several classes are left out too and stay unlabeled in the target.

        Parameters:
            labeled: the images of the target's own classes, if the pool does not hold all of them.
        """
        images, contents = self.pool.images, self.target.content_ids(is_strict=False)
        in_target = set(contents) - {""}
        labeled = images.take(self.own_rows) if labeled is None else labeled
        names_of = defaultdict[str, set[str]](set)  # by content: a list may claim any id
        for content, label in zip(labeled.content_ids(is_strict=False), labeled.labels.tolist(), strict=True):
            if content in in_target:
                names_of[content].add(labeled.classes[label])
        label_of = {self.pool.origins[label].class_name: label for label in self.own_classes}
        given = {content: label_of[min(names)] for content, names in names_of.items() if len(names) == 1}
        if given and given.keys() == in_target:
            raise DegenerateError(
                f"all {len(contents):,} images of the target are labeled already",
                expected="images of the target without a label, to find a category for",
                advice="add photos to --target, or leave out the labels of some",
            )
        labeled_problem = replace(self, given=given)
        is_left_out = _is_in(images, in_target) & ~labeled_problem.is_given_too()
        n_given = sum(content in given for content in contents)
        notes = [given_in_words(n_given)] if n_given else []
        if disputed := [row for row, content in enumerate(contents) if len(names_of.get(content, ())) > 1]:
            first = disputed[0]
            notes.append(
                f"{len(disputed):,} images of the target are labeled with several classes, which are not used: "
                f"{self.target.paths[first]} with {' and '.join(sorted(names_of[contents[first]]))}"
                f"{', ...' * (len(disputed) > 1)}"
            )
        if n_of_pool := int(is_left_out[self.other_rows].sum()):
            notes.append(f"{n_of_pool:,} images of the pool are images of the target too, and are left out")
        return labeled_problem._without(is_left_out), Copies(n_given, int(is_left_out.sum()), notes)

    def without_copies(self) -> tuple[Problem, Copies]:
        """Leave out labeled images that are, byte for byte, images of the target; returns the problem and a summary.

        For benchmarks, where no label of a target image may reach training.
        """
        is_copy = _is_in(self.pool.images, set(self.target.content_ids(is_strict=False)) - {""})
        if len(is_copy) and is_copy.all():
            raise DegenerateError(
                f"all {len(is_copy):,} labeled images are images of the target too",
                expected="labeled images that are not in the target",
                advice="take the labeled images out of the target, or leave out --drop-copies",
            )
        n = int(is_copy.sum())
        notes = [f"{n:,} labeled images are left out: they are images of the target too, byte for byte"] if n else []
        return self._without(is_copy), Copies(0, n, notes)

    def _without(self, is_left_out: Bool[Array, " pool"]) -> Problem:
        """Without some rows of the pool; all images have an id."""
        images = self.pool.images.with_ids(is_strict=False).take(np.flatnonzero(~is_left_out))
        return replace(self, pool=replace(self.pool, images=images), target=self.target.with_ids(is_strict=False))


def _is_in(images: ImageSet, contents: Container[str]) -> Bool[Array, " images"]:
    """Whether the content of each image is one of these."""
    return np.array([content in contents for content in images.content_ids(is_strict=False)], dtype=bool)


def make_problem(
    pool: Sequence[ImageSet],
    labeled: ImageSet | None,
    target: ImageSet,
    has_labels: bool = False,
    max_per_class: int | None = None,
) -> Problem:
    """Merge the pool; `labeled` are images of the target's own classes. Both may be missing.

    With `has_labels` the labels of the target become the truth, and a class is old if `labeled` has one of its name.
    The target of the problem never has labels.
    """
    own = [] if labeled is None else [labeled.named(OWN)]
    merged = Pool(target.without_labels().take([]).named(OWN), ())  # without any label all categories are new
    if own or pool:
        merged = merge_pool([*own, *pool], max_per_class=max_per_class)
    if not has_labels:
        return Problem(merged, target.without_labels())
    if (target.labels == UNLABELED).any():
        raise DataError(
            f"{int((target.labels == UNLABELED).sum()):,} images of the target have no label",
            expected="a label for each, to compute scores",
            advice="leave out --target-has-labels, or give a file with --truth",
        )
    known = set() if labeled is None else set(labeled.classes.values())
    old = tuple(label for label, name in target.classes.items() if name in known)
    return Problem(merged, target.without_labels(), Truth(target, old), len(target.classes))


def joined(sets: Sequence[ImageSet]) -> ImageSet | None:
    """Concatenate labeled sets: classes of the same name are one class, and duplicates are dropped."""
    if len(sets) < 2:
        return sets[0] if sets else None
    images = ImageSet.concat(sets)
    names = [each.classes.get(label) for each in sets for label in each.labels.tolist()]
    label_of = {name: label for label, name in enumerate(sorted({name for name in names if name is not None}))}
    changed = {
        "label": column("label", [label_of.get(name, UNLABELED) for name in names], len(images)),  # type: ignore[arg-type]
        "class_name": column("class_name", names, len(images)),
    }
    rows, seen = [], set()
    for row, (content, name) in enumerate(zip(images.content_ids(is_strict=False), names, strict=True)):
        if not content or (content, name) not in seen:  # an unreadable image has no content
            rows.append(row)
            seen.add((content, name))
    return images.replaced(changed).take(rows)


def _readable(images: ImageSet, table: FeatureTable) -> ImageSet:
    """The images that have features, in order, with the ids of the table."""
    if len(table) < len(images):
        # by row: images of two sources may share their path, and those of a list their id
        images = images.take(np.setdiff1d(np.arange(len(images)), list(table.bad_rows)))
    if len(images) != len(table):
        raise DataError(
            f"{len(table):,} features for {len(images):,} readable images",
            expected="one each",
            advice=f"delete {table.path}; it is recomputed",
        )
    return images.named_by(table.index["id"])


def given_in_words(n: int) -> str:
    """That target images keep the label that they have, without the final period."""
    if n == 1:
        return "1 image of the target was labeled before, and keeps that label"
    return f"{n:,} images of the target were labeled before, and keep that label"
