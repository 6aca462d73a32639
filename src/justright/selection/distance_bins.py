"""Distances to bins, and bins to words."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from justright.types import Array

DISCARDED = 0
Numbers = Float[Array, " classes"]
Bins = Int[Array, " classes"]
Flags = Bool[Array, " classes"]


def assign_bins(distance: Numbers, threshold: float | None, counts: Bins, n_bins: int, equal: str = "classes") -> Bins:
    """Bin of each class: 0 beyond the threshold, else from 1, the nearest, to `n_bins`.

    Bins have equally many classes, earlier ones taking what is left over; or, with equal="images", about equally many
    images, each class lying in the bin of its middle image. Classes at the same distance keep their order.
    """
    survives = np.ones(len(distance), dtype=bool) if threshold is None else distance <= threshold
    order = np.argsort(distance, kind="stable")
    order = order[survives[order]]
    bins = np.full(len(distance), DISCARDED, dtype=np.int64)
    if equal == "images":
        middle = np.cumsum(counts[order]) - counts[order] / 2
        bins[order] = 1 + np.floor(n_bins * middle / counts[order].sum()).astype(np.int64)
    else:
        for number, members in enumerate(np.array_split(order, n_bins), start=1):
            bins[members] = number
    return bins


def vote(split_bins: Int[Array, "splits classes"], n_bins: int) -> Bins:
    """The bin most splits put a class into; of equally frequent ones the smaller."""
    tally = np.stack([(split_bins == number).sum(axis=0) for number in range(n_bins + 1)])
    return tally.argmax(axis=0).astype(np.int64)


def bin_reasons(
    is_kept: Flags, bins: Bins, distance: Numbers, threshold: float, n_bins: int, keep_bin: int | None, discards: bool
) -> list[str]:
    """Why each class is kept or not; `keep_bin` None means that bins did not decide."""
    reasons = []
    for kept, number, d in zip(is_kept, bins, distance, strict=True):
        place = f"bin {number} of {n_bins}"
        if number == DISCARDED:
            reasons.append(f"too far: {_apart(d, '>', threshold)}")
        elif keep_bin is None:
            reasons.append(f"kept: {_apart(d, '<=', threshold)}" if discards else "kept: nothing is discarded")
        elif kept:
            reasons.append(f"kept: {place}")
        else:
            reasons.append(f"too {'near' if number < keep_bin else 'far'}: {place}")
    return reasons


def vote_reasons(kept_share: Numbers, is_kept: Flags, bins: Bins, n_splits: int, keep_bin: int | None) -> list[str]:
    """Why each class is kept or not, where a majority of splits decided."""
    reasons = []
    for share, kept, number in zip(kept_share, is_kept, bins, strict=True):
        is_far = number == DISCARDED or (keep_bin is not None and number >= keep_bin)
        verdict = "kept" if kept else ("too far" if is_far else "too near")
        reasons.append(f"{verdict}: chosen in {round(share * n_splits)} of {n_splits} splits")
    return reasons


def _apart(distance: float, sign: str, threshold: float) -> str:
    """Two numbers with as many digits as it takes to see which is larger."""
    digits = 2
    while digits < 8 and f"{distance:.{digits}f}" == f"{threshold:.{digits}f}" and distance != threshold:
        digits += 1
    return f"{distance:.{digits}f} {sign} {threshold:.{digits}f}"
