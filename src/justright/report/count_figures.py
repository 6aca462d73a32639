"""How the number of categories was found, as a figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from justright.errors import DataError
from justright.estimation.base import CategoryCounter
from justright.report.drawing import COLORS, style_axes
from justright.types import Array

COLOR, CHOSEN = COLORS[:2]


@dataclass
class SavedCount:
    """One estimate of count.json."""

    n_categories_: int
    curve_: Float[Array, "points 2"]
    curve_axes: tuple[str, str]
    interval: tuple[int, int] | None

    @staticmethod
    def of(said: Mapping[str, Any]) -> SavedCount:
        """Read one; DataError where it is not what `justright estimate --out` writes."""
        try:
            low_high = said.get("interval")
            return SavedCount(
                n_categories_=int(said["n_categories"]),
                curve_=np.asarray(said["curve"], dtype=np.float64).reshape(-1, 2),
                curve_axes=(str(said["axes"][0]), str(said["axes"][1])),
                interval=(int(low_high[0]), int(low_high[1])) if low_high else None,
            )
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise DataError(f"an estimate of K cannot be read: {error!r}") from error


def draw_counts(
    counters: Mapping[str, CategoryCounter | SavedCount], intervals: Mapping[str, tuple[int, int]]
) -> Figure:
    """What each counter looked at on its way, the K it chose, and the interval around it where there is one."""
    figure = Figure(figsize=(5.0 * len(counters), 3.4), layout="constrained")
    panels = figure.subplots(1, len(counters), squeeze=False)[0]
    for axes, (name, counter) in zip(panels, counters.items(), strict=True):
        x_name, y_name = counter.curve_axes
        k = counter.n_categories_
        axes.plot(counter.curve_[:, 0], counter.curve_[:, 1], "o-", color=COLOR, markersize=4, linewidth=1.2)
        is_k_across = x_name == "K"
        (axes.axvline if is_k_across else axes.axhline)(k, color=CHOSEN, linewidth=1.5)
        if name in intervals:
            (axes.axvspan if is_k_across else axes.axhspan)(*intervals[name], color=CHOSEN, alpha=0.15, linewidth=0)
        axes.set_title(f"{name}: K = {k}", loc="left", fontsize=10.5, fontweight="bold")
        axes.set_xlabel(x_name, fontsize=9.5)
        axes.set_ylabel(y_name, fontsize=9.5)
        for axis in (axes.xaxis, axes.yaxis)[: 1 if is_k_across else 2]:  # K and rounds are whole numbers
            axis.set_major_locator(MaxNLocator(integer=True))
        style_axes(axes)
    return figure
