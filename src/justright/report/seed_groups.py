"""Runs that repeat each other with other seeds, and what one such group changed against another: more than noise?"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from justright.evaluation import Scores
from justright.evaluation.intervals import spread
from justright.evaluation.scores import LEVEL
from justright.report.elements import optional
from justright.report.provenance import flat_texts, resolved
from justright.runs.run_folder import RunFolder

SETTINGS = (
    "method", "selector", "pool_role", "weighting", "seed", "scale", "n_target", "k_source", "backbone", "asked",
    "config",
)  # fmt: skip
OF_SELECTION = ("weighting", "pool_role")  # beside the selector and its parameters, they say how the pool is used
TOLD_ELSEWHERE = ("command", "out")  # what a person typed and where results went are no settings
CHANCE = "seed"  # runs that differ in this alone are repetitions
# counts that follow from the selection and from K. K itself, `n_target`, follows too where it was estimated
FOLLOWS = ("n_categories", "n_known")


@dataclass(frozen=True)
class ComparedRun:
    """A run under a short name, its settings on one level, and its scores if it has any."""

    name: str
    run: RunFolder

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What was asked, resolved, and the parameters of the selection."""
        about = resolved(self.run.about)
        found = flat_texts({name: about[name] for name in (*SETTINGS, *FOLLOWS) if name in about})
        saved = optional(lambda: self.run.selection)
        params = about.get("selector_params") if saved is None else saved.about.get("params")
        found |= flat_texts({"selection": params or {}})
        return {name: value for name, value in found.items() if name.rpartition(".")[2] not in TOLD_ELSEWHERE}

    @cached_property
    def scores(self) -> Scores | None:
        """All, Old and New."""
        return optional(lambda: self.run.scores)

    @property
    def target_print(self) -> str:
        """What tells the images of the target from others; where they lie does not matter."""
        told = (self.run.about.get("fingerprints") or {}).get("target")
        return str(told.get("content")) if isinstance(told, dict) else str(told)

    def key(self, ignoring_selection: bool = False) -> str:
        """Equal for runs that repeat each other with other seeds; or, without selection, for what may be compared."""
        follows = FOLLOWS if self.settings.get("k_source") == "given" else (*FOLLOWS, "n_target")
        kept = {
            name: value
            for name, value in self.settings.items()
            if name.rpartition(".")[2] != CHANCE
            and name not in follows
            and not (ignoring_selection and ("select" in name or name in OF_SELECTION))
        }
        return json.dumps(kept, sort_keys=True, default=str)


@dataclass(frozen=True)
class SeedGroup:
    """Runs that differ by seed only."""

    runs: tuple[ComparedRun, ...]

    @property
    def name(self) -> str:
        """The name of the first run, and how many more there are."""
        return self.runs[0].name if len(self.runs) == 1 else f"{self.runs[0].name} and {len(self.runs) - 1} more"

    @property
    def selector(self) -> str:
        """The selector of all of them."""
        return str(self.runs[0].settings.get("selector", ""))

    def values(self, images: str) -> list[float]:
        """The accuracy on "all", "old" or "new" images, of each run that has one."""
        found = [getattr(run.scores, images) for run in self.runs if run.scores is not None]
        return [value for value in found if math.isfinite(value)]

    def image_variance(self, images: str) -> float:
        """The variance of an accuracy by the choice of images. Averaging over seeds does not lower it."""
        found = []
        for run in self.runs:
            if run.scores is not None and images in run.scores.intervals:
                low, high = run.scores.intervals[images]
                found.append(((high - low) / 2 / float(ndtri((1 + run.scores.level) / 2))) ** 2)
        return float(np.mean(found)) if found else 0.0


@dataclass(frozen=True)
class ScoreChange:
    """What the accuracy on a group of images gained against the baseline, in points, and how sure that is."""

    group: str
    points: float
    low: float
    high: float
    n_seeds: int
    n_baseline_seeds: int

    def verdict(self) -> str:
        """Better, worse or noise; with one seed on a side, the noise of training is not known."""
        if self.low <= 0 <= self.high:
            return "within the noise"
        word = "better" if self.points > 0 else "worse"
        has_seeds = min(self.n_seeds, self.n_baseline_seeds) > 1
        return word if has_seeds else f"{word} on these images; with one seed it may still be chance"

    def __str__(self) -> str:
        return f"{self.points:+.1f} [{self.low:+.1f}, {self.high:+.1f}]"


def mean_and_spread(values: Sequence[float]) -> str:
    """Mean and standard deviation in percent, no spread of one value; a dash for NaN, nothing for no value at all."""
    if not values:
        return ""
    deviation = f" ± {100 * spread(values):.1f}" if len(values) > 1 else ""
    return "-" if np.isnan(values).any() else f"{100 * np.mean(values):.1f}{deviation}"


def change(group: SeedGroup, baseline: SeedGroup, images: str) -> ScoreChange | None:
    """The difference of two means with an interval, in points; None where a side has no such accuracy.

    Its variance is the sum over both sides of s^2 / n over seeds, where there are several, and of the variance by the
    choice of images. Both sides saw the same images, so the last term is on the safe side. The quantile is Student's,
    with degrees of freedom by Satterthwaite: few seeds tell little of s.
    """
    sides = [(side.values(images), side.image_variance(images)) for side in (group, baseline)]
    if not all(values for values, _ in sides):
        return None
    means = [float(np.mean(values)) for values, _ in sides]
    by_seed = [spread(values) ** 2 / len(values) if len(values) > 1 else 0.0 for values, _ in sides]
    variance = sum(by_seed) + sum(by_images for _, by_images in sides)
    squares = sum(v**2 / (len(values) - 1) for v, (values, _) in zip(by_seed, sides, strict=True) if len(values) > 1)
    tail = (1 + LEVEL) / 2
    quantile = float(stdtrit(variance**2 / squares, tail)) if squares > 0 else float(ndtri(tail))
    half = quantile * math.sqrt(variance)
    points = means[0] - means[1]
    n_seeds, n_baseline = (len(values) for values, _ in sides)
    return ScoreChange(images, 100 * points, 100 * (points - half), 100 * (points + half), n_seeds, n_baseline)
