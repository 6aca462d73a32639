"""Accuracy on all images, on those of old and on those of new classes, with intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int, Num

from justright.evaluation.intervals import wilson
from justright.evaluation.matching import Counts, match_counts, sum_by
from justright.evaluation.scores import LEVEL, PROTOCOLS, Protocol, Scores
from justright.utils.errors import DataError
from justright.utils.seeding import generator
from justright.utils.types import UNLABELED, Array, Labels, Mask
from justright.utils.validation import check_level

ROUNDING = 1e-9  # accuracies that differ by less are one


def evaluate(
    y_true: Labels,
    y_pred: Labels,
    is_old: Mask,
    *,
    has_kept_labels: Mask | None = None,
    called: Labels | None = None,
    protocol: Protocol = "v2",
    n_resamples: int = 1000,
    level: float = LEVEL,
    seed: int = 0,
) -> Scores:
    """Score the clusters `y_pred` against the classes `y_true`, one entry per image of the target.

    With P, the one-to-one map from clusters to classes that is right for most images, the accuracy of a set S is

        ACC(S) = 1/|S| sum_{i in S} 1(y_i = P(y~_i))

    - "v2": one P over all images; All, Old and New are ACC of all images and of those of old and new classes, so
      All = share_old Old + share_new New.
    - "v2b": the same P, then the mean of ACC over classes, so that rare classes count as much as common ones.
    - "v1": legacy; one P for the old and another for the new images, blind to confusions between them. All is their
      mixture by images. Never below v2; only for comparison with early papers.

    `is_old`: whether the class of the image has labeled images in the original split, before any selection.
    `has_kept_labels` splits Old into classes whose labels selection kept and those it dropped; old images only.
    Both must agree within a class. `n_resamples` = 0 computes no intervals. `called` is the class whose name each image
    has, for the second score, *names count*: see `names_right`.
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score  # slow to import

    if protocol not in PROTOCOLS:
        raise DataError(f"protocol {protocol!r}", expected=f"one of {', '.join(PROTOCOLS)}")
    if n_resamples < 0:
        raise DataError(f"n_resamples={n_resamples}", expected="at least 0")
    check_level(level)
    counts = Counts.of(y_true, y_pred)
    classes, n_images = counts.classes, counts.per_class()
    is_old_class = np.isin(classes, classes_where(is_old, y_true, "is_old"))
    groups = {"all": np.ones_like(is_old_class), "old": is_old_class, "new": ~is_old_class}
    if has_kept_labels is not None:
        is_kept = np.isin(classes, classes_where(has_kept_labels[is_old], y_true[is_old], "has_kept_labels"))
        groups |= {"old_kept": is_old_class & is_kept, "old_dropped": is_old_class & ~is_kept}
    n_right = np.zeros(len(classes), dtype=np.int64)
    for side in (is_old_class, ~is_old_class) if protocol == "v1" else (groups["all"],):
        if side.any():
            matching = match_counts(counts.only(classes[side]))
            n_right[np.searchsorted(classes, matching.classes)] = matching.n_shared
    tally = Tally(n_right, n_images, np.stack(list(groups.values())), averages_units=protocol == "v2b").with_few_units()

    intervals = {}
    if n_resamples:
        bounds = tally.intervals(generator(seed, "bootstrap of the scores"), n_resamples, level).tolist()
        intervals = {name: (low, high) for name, (low, high) in zip(groups, bounds, strict=True) if not np.isnan(low)}
    return Scores(
        **dict(zip(groups, tally.accuracy().tolist(), strict=True)),
        nmi=float(normalized_mutual_info_score(y_true, y_pred)),
        ari=float(adjusted_rand_score(y_true, y_pred)),
        protocol=protocol,
        n_images=counts.n_images,
        n_old=int(n_images[is_old_class].sum()),
        n_new=int(n_images[~is_old_class].sum()),
        n_classes=len(classes),
        n_clusters=len(counts.clusters),
        level=level,
        intervals=intervals,
        names={} if called is None else group_means(names_right(y_true, y_pred, is_old, called), is_old),
    )


def names_right(y_true: Labels, y_pred: Labels, is_old: Mask, called: Labels) -> Mask:
    """Which images are right if names count: y is the class of an image, y~ its cluster, a its name.

        right_i = 1(a_i = y_i)                           if the image has a name
        right_i = 1(y_i is new) 1(y_i = Q(y~_i))         otherwise

    Q is the one-to-one map from clusters to new classes that is right for most images without a name and of a new
    class. So images of a known class in a cluster without its name are wrong, while `evaluate` may match them.

    `called` is the class whose name an image has: `UNLABELED` for no name, any other number for a name that is no class
    of y_true.
    """
    is_right = called == y_true
    is_matched = (called == UNLABELED) & ~is_old
    if is_matched.any():
        classes, clusters = y_true[is_matched], y_pred[is_matched]
        is_right[is_matched] = match_counts(Counts.of(classes, clusters)).to_classes(clusters) == classes
    return is_right


def group_means(is_right: Mask, is_old: Mask) -> dict[str, float]:
    """The share of right images among all, those of old and those of new classes; NaN where there is none."""
    groups = {"all": np.ones_like(is_old), "old": is_old, "new": ~is_old}
    return {name: float(is_right[of].mean()) if of.any() else np.nan for name, of in groups.items()}


def classes_where(flag: Mask, y_true: Labels, name: str) -> Int[Array, " some"]:
    """The classes whose images have the flag; all images of a class must have it, or none."""
    if flag.shape != y_true.shape:
        raise DataError(f"{name} has {len(flag)} entries for {len(y_true)} images", expected="one entry per image")
    if len(mixed := np.intersect1d(y_true[flag], y_true[~flag])):
        problem = f"{name} is true for some images and false for others of {len(mixed)} classes, e.g. class {mixed[0]}"
        raise DataError(problem, expected="one value for all images of a class")
    return np.unique(y_true[flag])


@dataclass(frozen=True, eq=False)
class Tally:
    """Right and all images of each unit: a class, or a whole group of classes whose images count alike."""

    n_right: Int[Array, "*draws units"]
    n_images: Int[Array, "*draws units"]
    is_member: Bool[Array, "groups units"]  # whether a unit belongs to a group
    averages_units: bool  # whether an accuracy is the mean over units (each counts once) or over images

    def with_few_units(self) -> Tally:
        """Join units that belong to the same groups, where images count: the sums have the same distribution."""
        if self.averages_units:
            return self
        units, unit = np.unique(self.is_member, axis=1, return_inverse=True)
        return Tally(sum_by(unit, self.n_right), sum_by(unit, self.n_images), units, averages_units=False)

    def accuracy(self) -> Float[Array, "*draws groups"]:
        """The accuracy of each group, NaN for a group without images."""
        weight = self.is_member.T.astype(float)
        if self.averages_units:
            return _ratio(_ratio(self.n_right, self.n_images, empty=0.0) @ weight, (self.n_images > 0) @ weight)
        return _ratio(self.n_right @ weight, self.n_images @ weight)

    def n_effective(self) -> Float[Array, " groups"]:
        """Effective number of images of each group; NaN for a group without images.

        A mean over units counts the images of small units more (Kish, 1965): (sum_u 1)^2 / sum_u 1 / n_u.
        """
        weight = self.is_member.T.astype(float)
        if not self.averages_units:
            return np.where(self.n_images @ weight > 0, self.n_images @ weight, np.nan)
        has_images = (self.n_images > 0).astype(float)
        return _ratio((has_images @ weight) ** 2, _ratio(has_images, self.n_images, empty=0.0) @ weight)

    def intervals(self, rng: np.random.Generator, n_resamples: int, level: float) -> Float[Array, "groups 2"]:
        """One row (low, high) per group; NaN for a group without images. The matching is held fixed.

        A share of images has the interval of Wilson. A mean over classes has bootstrap percentiles (Efron, 1979), and
        Wilson's interval where all resamples are equal because each class is all right or all wrong. Counts of M
        images that are drawn from M images follow a multinomial, so that a million images cost no more than a hundred.
        """
        bounds = np.stack(wilson(self.accuracy(), self.n_effective(), level), axis=1)
        if not self.averages_units:
            return bounds
        cells = np.concatenate([self.n_right, self.n_images - self.n_right])
        total = int(cells.sum())
        right, wrong = np.split(rng.multinomial(total, cells / total, size=n_resamples), 2, axis=1)
        accuracy, tail = replace(self, n_right=right, n_images=right + wrong).accuracy(), (1 - level) / 2
        # a resample may contain no image of a tiny group
        is_seen = ~np.isnan(accuracy).all(axis=0)
        drawn = np.full_like(bounds, np.nan)
        drawn[is_seen] = np.nanquantile(accuracy[:, is_seen], [tail, 1 - tail], axis=0).T
        has_width = drawn[:, 1] - drawn[:, 0] > ROUNDING
        bounds[has_width] = drawn[has_width]
        return bounds


def _ratio(part: Num[Array, "*shape"], whole: Num[Array, "*shape"], empty: float = np.nan) -> Float[Array, "*shape"]:
    return np.divide(part, whole, out=np.full(part.shape, empty), where=whole > 0)
