"""From estimates on resampled images to an interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from justright.errors import DegenerateError


def middle_interval(estimates: Sequence[int], level: float, holding: int) -> tuple[int, int]:
    """The quantiles (1 - level)/2 and (1 + level)/2 of whole numbers, rounded outward to values that occurred.

    `holding` is the estimate on all images, which resamples need not reach: the interval is widened to hold it.
    """
    if not estimates or not 0 < level < 1:
        raise DegenerateError(
            f"An interval of level {level} from {len(estimates)} resamples.",
            expected="a level between 0 and 1 and at least one resample",
        )
    low = np.quantile(estimates, (1 - level) / 2, method="lower")
    high = np.quantile(estimates, (1 + level) / 2, method="higher")
    return min(int(low), holding), max(int(high), holding)
