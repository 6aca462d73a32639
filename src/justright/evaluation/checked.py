"""Accuracy without ground truth, from a small random sample that a person checked.

Plain samples get the exact interval of Clopper and Pearson (Biometrika 26, 1934), here for a finite set of images.
Confidence and clusters sharpen it: prediction-powered inference (Angelopoulos, Bates, Fannjiang, Jordan and Zrnic,
Science 382, 2023) with the tuning of PPI++ (Angelopoulos, Duchi and Zrnic, arXiv 2311.01453), which for a finite set
is the regression estimator of survey sampling, and stratified sampling (Cochran, Sampling Techniques, 1977, chapters
5 and 7). Their interval is that of Korn and Graubard (Survey Methodology 24, 1998): Clopper and Pearson at the
effective sample size, which stays in [0, 1] and does not collapse when every checked image is right.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from justright.evaluation.intervals import clopper_pearson, exact_interval, n_more_checks, wilson
from justright.evaluation.scores import LEVEL
from justright.utils.errors import DataError, DegenerateError
from justright.utils.types import Array

# A cluster's own variance is mixed with the one pooled over clusters, which counts as this many checks: two right
# checks of two do not mean that a third check would certainly be right.
_SHRINKAGE = 2.0

# With fewer right or fewer wrong checks than this, neither a slope nor a variance within clusters is reliable:
# simulated 95 % intervals then covered the truth in as few as 84 % of cases.
_ENOUGH = 8

HALF_WIDTH = 0.04  # half of the width of an interval that is narrow enough

# The forecast of further checks counts the confidences, clipped to these bounds, as this many checks.
_N_EXPECTED = 16
_ENDS = (0.05, 0.95)


@dataclass(frozen=True)
class CheckedAccuracy:
    """The accuracy on all images, estimated from checks."""

    accuracy: float
    low: float  # of its interval, as `high`
    high: float
    level: float
    n_checked: int
    n_images: int
    n_effective: float  # number of plain checks with the same precision
    plain_low: float  # the interval of Wilson for the share of right checks alone
    plain_high: float
    n_more: int  # further checks, drawn as before, until the interval is HALF_WIDTH to either side

    @property
    def length_ratio(self) -> float:
        """Length of the interval relative to the plain one."""
        return (self.high - self.low) / (self.plain_high - self.plain_low)

    def to_dict(self) -> dict[str, float | None]:
        """The fields as JSON values; infinite numbers, after all images were checked, become null."""
        values = asdict(self) | {"length_ratio": self.length_ratio}
        return {name: value if np.isfinite(value) else None for name, value in values.items()}

    def in_words(self) -> str:
        """The plain interval, and how many further checks are needed, as sentences."""
        text = f"From the checks alone the interval is {100 * self.plain_low:.1f} to {100 * self.plain_high:.1f}"
        if self.length_ratio < 1:
            text += f"; with the confidences it is {self.length_ratio:.2f} times as long"
        more = f"{self.n_more:,} more checks narrow it to" if self.n_more else "It is within"
        return f"{text}. {more} ±{100 * HALF_WIDTH:.0f} points."

    def __str__(self) -> str:
        return (
            f"Accuracy about {100 * self.accuracy:.1f}, {100 * self.level:.0f} % interval {100 * self.low:.1f} to "
            f"{100 * self.high:.1f}, from {self.n_checked:,} checks of {self.n_images:,} images. {self.in_words()}"
        )


def estimate_accuracy(
    checked: Int[Array, " checked"],
    is_right: Bool[Array, " checked"],
    n_images: int,
    *,
    clusters: Int[Array, " images"] | None = None,
    confidence: Float[Array, " images"] | None = None,
) -> CheckedAccuracy:
    """Estimate the accuracy on all images from those in `checked`, distinct rows drawn at random.

    An image is right if it shows the category of its cluster. Where two clusters are the same category, only one of
    them can be right: then this estimates the accuracy All of `evaluate`.

    With f the confidence of the model, y the checks, h the strata, W_h the share of images in h and s_h those checked:

        accuracy = sum_h W_h ( lambda mean_h f + mean_{s_h} (y - lambda f) )

    `clusters` makes each cluster a stratum: the draw may favor some clusters if it is random within each, and
    every cluster needs a check. `confidence` makes lambda the slope of y on f, so that an uninformative confidence
    does no harm; without it, or with fewer than 8 right or 8 wrong checks, lambda is 0. Without either this is the
    share of right images.
    """
    _check_sample(checked, is_right, n_images)
    for name, given in (("clusters", clusters), ("confidence", confidence)):
        if given is not None and given.shape != (n_images,):
            raise DataError(f"{name} of shape {given.shape} for {n_images} images", expected="one entry per image")
    n_checked = len(checked)
    sample = _Sample.of(checked, np.zeros(n_images, dtype=np.int64) if clusters is None else clusters)

    y, offset, n_fitted = is_right.astype(float), 0.0, 0
    is_enough = min(is_right.sum(), (~is_right).sum()) >= _ENOUGH
    if confidence is not None:
        if not np.isfinite(confidence).all():
            raise DataError("a confidence is not finite", expected="a number for every image")
        if is_enough:
            f = confidence[checked]
            slope = sample.slope(y, f)
            y = y - slope * f
            offset = slope * float(confidence.mean())
            n_fitted = 1
    accuracy = float(np.clip(offset + float(sample.weight @ sample.means(y)), 0.0, 1.0))

    plain = wilson(float(is_right.mean()), n_checked, LEVEL)
    if n_checked == n_images:
        return CheckedAccuracy(accuracy, accuracy, accuracy, LEVEL, n_checked, n_images, np.inf, *plain, 0)
    if clusters is None and n_fitted == 0:
        n_effective = sample.kish_size
        low, high = exact_interval(int(is_right.sum()), n_checked, n_images, LEVEL)
    else:
        n_effective = sample.effective_size(accuracy, y, n_fitted) if is_enough else sample.kish_size
        low, high = clopper_pearson(accuracy, n_effective, LEVEL)
    n_more = 0
    if high - low > 2 * HALF_WIDTH:
        variance = accuracy * (1 - accuracy) / (n_effective * (1 / n_checked - 1 / n_images))
        expected = np.full(n_images, 0.5) if confidence is None else confidence
        n_more = max(1, forecast_checks(expected, n_checked, accuracy, variance))
    return CheckedAccuracy(accuracy, low, high, LEVEL, n_checked, n_images, n_effective, *plain, n_more)


def forecast_checks(
    confidence: Float[Array, " images"], n_checked: int = 0, accuracy: float = 0.0, variance: float = 0.0
) -> int:
    """Number of further random checks until the interval is HALF_WIDTH to either side; may be called before any check.

    With f the confidence, m = 16 and n checks with this accuracy and this variance per check:

        a = (n accuracy + m mean f) / (n + m),  v = (n variance + m mean f (1 - f)) / (n + m)

    the result is n_more_checks of a and v.
    """
    if not len(confidence):
        return 0
    f, n = np.clip(confidence, *_ENDS), n_checked + _N_EXPECTED
    mean = (n_checked * accuracy + _N_EXPECTED * float(f.mean())) / n
    spread = (n_checked * variance + _N_EXPECTED * float((f * (1 - f)).mean())) / n
    return n_more_checks(mean, spread, n_checked, len(f), LEVEL, HALF_WIDTH)


@dataclass(frozen=True, eq=False)
class _Sample:
    """The stratum of each checked image, and the number of images and checked images of each stratum."""

    stratum: Int[Array, " checked"]
    n_images: Int[Array, " strata"]
    n_checked: Int[Array, " strata"]

    @staticmethod
    def of(checked: Int[Array, " checked"], clusters: Int[Array, " images"]) -> _Sample:
        """Each cluster is a stratum; raises if one has no checked image."""
        stratum = np.unique(clusters, return_inverse=True)[1]
        n_images = np.bincount(stratum)
        n_checked = np.bincount(stratum[checked], minlength=len(n_images))
        if n_missed := int((n_checked == 0).sum()):
            raise DegenerateError(
                f"{n_missed} of {len(n_checked)} clusters have no checked image",
                expected="at least one checked image of every cluster",
                advice="leave `clusters` out if the sample was drawn from all images, or check the missing clusters",
            )
        return _Sample(stratum[checked], n_images, n_checked)

    @property
    def weight(self) -> Float[Array, " strata"]:
        return self.n_images / self.n_images.sum()

    def means(self, values: Float[Array, " checked"]) -> Float[Array, " strata"]:
        return np.bincount(self.stratum, values, minlength=len(self.n_checked)) / self.n_checked

    def slope(self, y: Float[Array, " checked"], f: Float[Array, " checked"]) -> float:
        """Least squares of y on f within strata, 0 where f does not vary."""
        y, f = y - self.means(y)[self.stratum], f - self.means(f)[self.stratum]
        spread = float(f @ f)
        return float(f @ y) / spread if spread > 1e-12 * max(len(f), 1) else 0.0

    @property
    def kish_size(self) -> float:
        """Number of plain checks with the same precision if all strata are alike (Kish, 1965), for a finite set."""
        unseen = 1 - self.n_checked / self.n_images
        return 1 / float((self.weight**2 * unseen / self.n_checked).sum())

    def effective_size(self, accuracy: float, values: Float[Array, " checked"], n_fitted: int) -> float:
        """The number of plain checks, with replacement, whose share of right ones has the variance of this estimate.

        The estimate is the weighted mean of `values`, sampled without replacement.
        """
        from scipy.special import ndtri, stdtrit  # slow to import

        n_strata, n_checked = len(self.n_checked), len(values)
        deviation = values - self.means(values)[self.stratum]
        squares = np.bincount(self.stratum, deviation**2, minlength=n_strata)
        total, freedom = float(squares.sum()), n_checked - n_strata - n_fitted
        if freedom < _ENOUGH:  # too few checks per stratum: the variance over all strata is larger
            total, freedom = float(np.var(values)) * n_checked, max(n_checked - 1 - n_fitted, 1)
        # one more check that neither strata nor confidence explain: a sharp confidence is rarely wrong, and a sample
        # without such an image would make the interval too short
        pooled = (total + accuracy * (1 - accuracy)) / (freedom + 1)
        within = (squares + _SHRINKAGE * pooled) / (self.n_checked - 1 + _SHRINKAGE) if n_strata > 1 else pooled
        unseen = 1 - self.n_checked / self.n_images
        variance = float((self.weight**2 * unseen * within / self.n_checked).sum())
        if variance <= 0 or not 0 < accuracy < 1:
            return self.kish_size
        tail = (1 + LEVEL) / 2
        # a variance from few checks is itself uncertain: Student's quantile instead of the normal one
        return accuracy * (1 - accuracy) / variance * float(ndtri(tail) / stdtrit(freedom, tail)) ** 2


def _check_sample(checked: Int[Array, " checked"], is_right: Bool[Array, " rows"], n_images: int) -> None:
    if len(checked) != len(is_right):
        raise DataError(f"{len(checked)} checked images and {len(is_right)} checks", expected="one check per image")
    if not len(checked):
        raise DegenerateError("no image was checked", expected="at least one", advice="check about 30 random images")
    if checked.min() < 0 or checked.max() >= n_images or len(np.unique(checked)) != len(checked):
        raise DataError(
            f"{len(checked)} checked rows from {checked.min()} to {checked.max()}, {len(np.unique(checked))} distinct",
            expected=f"distinct rows between 0 and {n_images - 1}",
        )
