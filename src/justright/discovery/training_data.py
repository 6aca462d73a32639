"""A split and its weights for training: labeled images first, -1 for unlabeled, classes numbered from 0."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float, Int

from justright.data.batches import BalancedBatches
from justright.data.image_set import ImageSet
from justright.data.splits import Split
from justright.utils.errors import DataError, DegenerateError
from justright.utils.hashing import hash_list, in_blocks
from justright.utils.seeding import generator
from justright.utils.types import UNLABELED, Array, Mask

Weighting = Literal["auto", "hard", "soft", "resample"]
WEIGHTINGS: tuple[str, ...] = get_args(Weighting)
"""hard: every weight is 0 or 1; soft: weights act in the losses; resample: they act in the sampler.

auto is hard where every weight is 0 or 1, else soft. In all of them an image of weight 0 leaves the data.
"""


@dataclass(frozen=True, eq=False)
class TrainingData:
    """All labeled images, then all unlabeled ones, with labels and weights."""

    images: ImageSet  # in that order
    n_labeled: int  # how many of them are labeled
    labels: Int[Array, " images"]  # the number of the class, known ones first, then those that only guide; or -1
    weight: Float[Array, " images"]  # in the losses
    chance: Float[Array, " images"] | None  # in the sampler
    is_used: Mask  # whether training uses the image
    is_held_out: Mask  # labeled images kept for calibration
    known: tuple[str, ...]  # the names of the classes that get a category of their own
    known_labels: tuple[int, ...]  # their labels in the split
    given: Int[Array, " target"]  # known class that a person assigned to a target image, or -1

    @staticmethod
    def of(
        split: Split,
        sample_weight: Float[Array, " labeled"] | None = None,
        weighting: Weighting = "auto",
        held_out_share: float = 0.0,
    ) -> TrainingData:
        """Number the classes, apply the weights, hold some labeled images out.

        A target image that is also a labeled image is seen once, as labeled, or held out.
        """
        classes, n_labeled, n_unlabeled = split.labeled.labels, len(split.labeled), len(split.unlabeled)
        weight = np.ones(n_labeled) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        _check(classes, weight, n_unlabeled, may_be_empty=bool(split.guide_classes))
        weighting = _resolved(weighting, weight)
        is_kept = weight > 0
        is_guide = np.isin(classes, split.guide_classes)
        known, guides = np.unique(classes[is_kept & ~is_guide]), np.unique(classes[is_kept & is_guide])
        labels = _numbered(classes, np.concatenate([known, guides]))
        is_held_out = _held_out(labels, is_kept & ~is_guide, held_out_share)
        names = split.labeled.classes
        images = ImageSet.concat([split.labeled, split.unlabeled])
        content_ids = images.content_column()
        given_class, is_labeled_too = _given(split.given, content_ids, ~is_guide, known)
        return TrainingData(
            images=images.with_ids(),
            n_labeled=n_labeled,
            labels=np.concatenate([labels, np.full(n_unlabeled, UNLABELED, dtype=np.int32)]),
            weight=np.concatenate([weight if weighting == "soft" else np.ones(n_labeled), np.ones(n_unlabeled)]),
            chance=np.concatenate([weight, np.ones(n_unlabeled)]) if weighting == "resample" else None,
            is_used=np.concatenate([is_kept & ~is_held_out, ~is_labeled_too]),
            is_held_out=np.concatenate([is_held_out, np.zeros(n_unlabeled, dtype=bool)]),
            known=tuple(names[int(label)] for label in known),
            known_labels=tuple(int(label) for label in known),
            given=given_class,
        )

    @property
    def labeled(self) -> Int[Array, " rows"]:
        """Rows of the labeled images of known classes used in training."""
        return np.flatnonzero(self.is_used[: self.n_labeled] & (self.labels[: self.n_labeled] < len(self.known)))

    @property
    def guides(self) -> Int[Array, " rows"]:
        """Rows of the labeled images that only guide."""
        return np.flatnonzero(self.is_used[: self.n_labeled] & (self.labels[: self.n_labeled] >= len(self.known)))

    @property
    def unlabeled(self) -> Int[Array, " rows"]:
        """Rows of the target used in training without a label."""
        return self.n_labeled + np.flatnonzero(self.is_used[self.n_labeled :])

    @property
    def seen(self) -> Int[Array, " rows"]:
        """`labeled`, then `unlabeled`."""
        return np.concatenate([self.labeled, self.unlabeled])

    def of_target(self, category: Int[Array, " unlabeled"]) -> Int[Array, " target"]:
        """The category of every target image from those of the `unlabeled` rows; the others keep their given label."""
        of_target = self.given.astype(np.int64)
        of_target[self.unlabeled - self.n_labeled] = category
        return of_target

    def batches(
        self,
        batch_size: int,
        seed: int,
        purpose: str = "batches",
        labeled: Int[Array, " labeled"] | None = None,
        unlabeled: Int[Array, " unlabeled"] | None = None,
    ) -> BalancedBatches:
        """Make batches of all images used in training, or of some rows."""
        labeled = self.labeled if labeled is None else labeled
        unlabeled = self.unlabeled if unlabeled is None else unlabeled
        chance = None if self.chance is None else self.chance[labeled]
        return BalancedBatches(labeled, unlabeled, batch_size, seed, purpose, chance)

    def without_labels(self) -> TrainingData:
        """Return the target alone: no known classes, no labeled images."""
        is_target = np.arange(len(self.images)) >= self.n_labeled
        nothing = np.zeros_like(is_target)
        given = np.full_like(self.given, UNLABELED)
        return replace(self, is_used=is_target, is_held_out=nothing, known=(), known_labels=(), given=given)

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """Return hashes of everything that must not change when a run is resumed."""

        def exactly(numbers: Float[Array, " images"]) -> str:
            return hash_list([number.hex() for number in block] for block in in_blocks(numbers))

        content_ids = self.images.content_column()
        return {
            "labeled_images": hash_list(in_blocks(content_ids[: self.n_labeled])),
            "target_images": hash_list(in_blocks(content_ids[self.n_labeled :])),
            "labels": hash_list(chain(in_blocks(self.labels), [list(self.known)])),
            "weights": exactly(self.weight),
            "chance": None if self.chance is None else exactly(self.chance),
            "used": hash_list(in_blocks(np.flatnonzero(self.is_used))),
        }


def total_categories(kept: Collection[int], own: Collection[int], n_target: int) -> int:
    """Count the categories if the pool is a rival: those of the target, and kept classes that it lacks.

    `own` are the labeled classes that the target has too (docs/research/decisions.md, "Categories with a pool").
    """
    return len(set(kept) | set(own)) + n_target - len(set(own))


def _check(
    classes: Int[Array, " labeled"], weight: Float[Array, " weights"], n_unlabeled: int, may_be_empty: bool
) -> None:
    if len(weight) != len(classes):
        raise DataError(f"{len(weight):,} weights for {len(classes):,} labeled images", expected="one each")
    if (classes == UNLABELED).any():
        raise DataError(f"{int((classes == UNLABELED).sum()):,} labeled images have no label", expected="a label each")
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise DataError("weights below 0 or not finite", expected="at least 0; 1 changes nothing")
    if not n_unlabeled:
        raise DegenerateError("no unlabeled images", expected="a target to discover categories in")
    if len(classes) and not (weight > 0).any() and not may_be_empty:
        raise DegenerateError(
            "every labeled image weighs 0", expected="a weight above 0", advice="another selector, or none"
        )


def _resolved(weighting: Weighting, weight: Float[Array, " labeled"]) -> Weighting:
    """The weighting, with soft or hard for auto."""
    if weighting not in WEIGHTINGS:
        raise DataError(f"a weighting called {weighting!r}", expected=f"one of {', '.join(WEIGHTINGS)}")
    soft = weight[~np.isin(weight, (0.0, 1.0))]
    if weighting == "hard" and len(soft):
        raise DataError(
            f"weights such as {soft[0]:g}",
            expected="0 or 1 for hard weighting",
            advice="a threshold in the selector, or weighting='soft'",
        )
    if weighting == "auto":
        return "soft" if len(soft) else "hard"
    return weighting


def _numbered(classes: Int[Array, " labeled"], first: Int[Array, " some"]) -> Int[Array, " labeled"]:
    """The classes as numbers from 0: those of `first` in its order, then all others."""
    order = np.concatenate([first, np.setdiff1d(classes, first)])
    number = {int(label): place for place, label in enumerate(order)}
    return np.array([number[label] for label in classes.tolist()], dtype=np.int32)


def n_held_out(n_images: int, share: float) -> int:
    """Count the images of a class to hold out; at least one remains for training."""
    return max(0, min(round(share * n_images), n_images - 1))


def _given(
    given: Mapping[str, int], content_ids: pa.ChunkedArray, is_own: Bool[Array, " labeled"], known: Int[Array, " known"]
) -> tuple[Int[Array, " target"], Bool[Array, " target"]]:
    """The known class that a person gave to each target image, or -1; and whether the image is also a labeled one.

    A class of weight 0 is not known: target images with such a label are treated as unlabeled.
    """
    n_labeled = len(is_own)
    target = content_ids[n_labeled:]
    if not given:
        return np.full(len(target), UNLABELED, dtype=np.int32), np.zeros(len(target), dtype=bool)
    number = {int(label): place for place, label in enumerate(known)}
    known_class = np.array(
        [number.get(given.get(each, UNLABELED), UNLABELED) for each in target.to_pylist()], dtype=np.int32
    )
    own = content_ids[:n_labeled].filter(pa.array(is_own)).combine_chunks()
    return known_class, (known_class != UNLABELED) & pc.is_in(target, value_set=own).to_numpy()


def _held_out(labels: Int[Array, " labeled"], is_kept: Mask, share: float) -> Mask:
    """A share of each class at random."""
    is_held_out = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels[is_kept]) if share else ():
        rows = np.flatnonzero(is_kept & (labels == label))
        n = n_held_out(len(rows), share)
        is_held_out[generator(0, "held out", int(label)).permutation(rows)[:n]] = True
    return is_held_out
