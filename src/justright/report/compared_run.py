"""A run beside others: its settings on one level, its scores, and the runs that differ from it by seed only."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri

from justright.evaluation import Scores
from justright.report.provenance import flat, resolved
from justright.report.reading import Missing, attempt
from justright.runs.run_folder import RunFolder

BASELINES = {"own": "own labels alone", "none": "no selection"}
"""Selectors that others are compared with: the first one that is among the runs, and what it is called."""

SETTINGS = (
    "method", "selector", "pool_role", "weighting", "seed", "scale", "n_target", "k_source", "backbone", "asked",
    "config",
)  # fmt: skip

OF_SELECTION = ("weighting", "pool_role")
"""Settings beside the selector and its parameters that say how the pool is used."""

TOLD_ELSEWHERE = ("command", "out")
"""What a person typed and where results went are no settings."""

CHANCE = "seed"
"""Runs that differ in this alone are repetitions."""

FOLLOWS = ("n_categories", "n_known")
"""Counts that follow from the selection and from K. K itself, `n_target`, follows too where it was estimated."""


@dataclass(frozen=True)
class ComparedRun:
    """A run under a short name, its settings on one level, and its scores if it has any."""

    name: str
    run: RunFolder

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What was asked, resolved, and the parameters of the selection."""
        about = resolved(self.run.about)
        found = flat({name: about[name] for name in (*SETTINGS, *FOLLOWS) if name in about})
        saved = attempt(lambda: self.run.selection, "")
        params = about.get("selector_params") if isinstance(saved, Missing) else saved.about.get("params")
        found |= flat({"selection": params or {}})
        return {name: value for name, value in found.items() if name.rpartition(".")[2] not in TOLD_ELSEWHERE}

    @cached_property
    def scores(self) -> Scores | None:
        """All, Old and New."""
        scores = attempt(lambda: self.run.scores, "")
        return None if isinstance(scores, Missing) else scores

    @property
    def target_print(self) -> str:
        """What tells the images of the target from others; where they lie does not matter."""
        told = (self.run.about.get("fingerprints") or {}).get("target")
        return str(told.get("content")) if isinstance(told, dict) else str(told)

    def key(self, ignoring_selection: bool = False) -> str:
        """Equal for runs that repeat each other with other seeds; or, without selection, for what may be compared."""
        follows = FOLLOWS if self.settings.get("k_source") == "given" else (*FOLLOWS, "n_target")
        kept = {name: value for name, value in self.settings.items() if not _is_chance(name) and name not in follows}
        if ignoring_selection:
            kept = {name: value for name, value in kept.items() if "select" not in name and name not in OF_SELECTION}
        return json.dumps(kept, sort_keys=True, default=str)


@dataclass(frozen=True)
class Group:
    """Runs that differ by seed only."""

    runs: tuple[ComparedRun, ...]

    @property
    def name(self) -> str:
        """Of its runs."""
        return self.runs[0].name if len(self.runs) == 1 else f"{self.runs[0].name} and {len(self.runs) - 1} more"

    def values(self, group: str) -> list[float]:
        """The accuracy of each run that has one."""
        found = [getattr(run.scores, group) for run in self.runs if run.scores is not None]
        return [value for value in found if math.isfinite(value)]

    def mean(self, group: str) -> float | None:
        """Over the runs."""
        values = self.values(group)
        return float(np.mean(values)) if values else None

    def spread(self, group: str) -> float | None:
        """The standard deviation over seeds; None from one."""
        values = self.values(group)
        return float(np.std(values, ddof=1)) if len(values) > 1 else None

    def image_variance(self, group: str) -> float:
        """Of an accuracy, by the choice of images. Averaging over seeds does not lower it."""
        found = []
        for run in self.runs:
            if run.scores is not None and group in run.scores.intervals:
                low, high = run.scores.intervals[group]
                found.append(((high - low) / 2 / float(ndtri((1 + run.scores.level) / 2))) ** 2)
        return float(np.mean(found)) if found else 0.0


def _is_chance(name: str) -> bool:
    return name.rpartition(".")[2] == CHANCE
