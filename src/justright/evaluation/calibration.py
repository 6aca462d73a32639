"""Calibration of confidences: how far they are from the share that is right, and how well they rank images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from justright.utils.errors import DegenerateError
from justright.utils.types import Array

N_BINS = 10


@dataclass(frozen=True)
class Calibration:
    """Confidences compared with what is right; shares between 0 and 1."""

    n_images: int
    accuracy: float
    confidence: float  # its mean
    error: float  # expected calibration error
    auc: float  # area under the curve; NaN where all images are right, or none is
    bins: tuple[tuple[int, float, float], ...]  # images, mean confidence and accuracy, from the lowest confidence on


def calibration(confidence: Float[Array, " images"], is_right: Bool[Array, " images"]) -> Calibration:
    """Compare confidences c with what is right, over bins B of equally many images in the order of confidence.

    error = sum_B |B| / N |mean_B(c) - mean_B(right)|
    auc   = P(c_i > c_j) + 1/2 P(c_i = c_j)     over all pairs of a right image i and a wrong image j
    """
    from sklearn.metrics import roc_auc_score  # slow to import

    if not len(confidence):
        raise DegenerateError("no confidences to compare", expected="at least one image")
    c = confidence.astype(np.float64)
    parts = [part for part in np.array_split(np.argsort(c, kind="stable"), N_BINS) if len(part)]
    bins = tuple((len(part), float(c[part].mean()), float(is_right[part].mean())) for part in parts)
    accuracy = float(is_right.mean())
    auc = float(roc_auc_score(is_right, c)) if 0 < accuracy < 1 else np.nan
    error = sum(size * abs(mean - right) for size, mean, right in bins) / len(c)
    return Calibration(len(c), accuracy, float(c.mean()), error, auc, bins)
