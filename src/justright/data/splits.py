"""The GCD protocol: one data set as a labeled part, an unlabeled part, and a sealed truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from justright.data.class_split import ClassSplit, legacy_generator
from justright.data.image_set import ImageSet
from justright.data.truth import Truth
from justright.utils.errors import DataError
from justright.utils.settings import BELOW_1


@dataclass(frozen=True)
class Split:
    """What selection and training may know: labeled images, unlabeled images, and the roles of the classes."""

    labeled: ImageSet  # the images whose labels training sees
    unlabeled: ImageSet  # the target, without labels, class names and super-categories: these are in a Truth, apart
    classes: ClassSplit | None = None  # old and new ones; None where nobody knows, as with a person's own photos
    guide_classes: tuple[int, ...] = ()  # they only guide learning: no image of the target is ever called one of them
    # unlabeled images that a person has labeled: content id to label; they train as labeled and keep that label
    given: Mapping[str, int] = field(default_factory=dict)

    @property
    def old_classes(self) -> tuple[int, ...]:
        """Classes that the target's own labeled part has."""
        return () if self.classes is None else self.classes.old


def gcd_split(images: ImageSet, classes: ClassSplit, labeled_share: float = 0.5, seed: int = 0) -> tuple[Split, Truth]:
    """Split a data set by the GCD protocol.

    Labeled are int(share * n) of the n images of old classes, drawn over all of them together (not class by class) by
    numpy's legacy generator; unlabeled is everything else. With the official train images in their official order
    and seed 0 this is the split of the published results. Both parts keep the order of `images`.
    """
    if absent := sorted(set(classes.old + classes.new) - set(images.classes)):
        problem = f"the split names {len(absent)} classes that {images!r} lacks, such as {absent[:3]}"
        raise DataError(problem, advice="check that the split belongs to this data set")
    if not (BELOW_1.allows(labeled_share) and labeled_share > 0):
        raise DataError(f"labeled_share is {labeled_share}", expected="a share between 0 and 1")
    images = images.of_classes(classes.old + classes.new)
    of_old = np.flatnonzero(np.isin(images.labels, classes.old))
    drawn = legacy_generator(seed).choice(len(of_old), int(labeled_share * len(of_old)), replace=False)
    is_labeled = np.zeros(len(images), dtype=bool)
    is_labeled[of_old[drawn]] = True
    labeled, rest = (images.take(np.flatnonzero(rows)) for rows in (is_labeled, ~is_labeled))
    return Split(labeled, rest.without_labels(), classes), Truth(rest, classes.old)
