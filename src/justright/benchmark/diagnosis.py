"""What a diagnosis found: each setting against using everything, and a verdict that may be "use everything"."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import stdtrit

from justright.types import Array

NONE = "none"
LEVEL = 0.95
"""All intervals hold together with this probability, however many settings are compared (Bonferroni)."""

COLUMNS = ("setting", "New %", "New against none", "All against none", "better in draws", "classes kept %")
CAVEAT = {
    "frozen": "Frozen features show which labels confuse the clusters, not what a network learns from them; soft "
    "weights count as kept. A lead here is a hint for training, no proof.",
    "linear": "Linear discriminants stand in for what a network learns from weighted labels. A lead here is a hint for "
    "training, no proof.",
}


@dataclass(frozen=True)
class Outcome:
    """One setting on one draw: accuracy on new and on all images, and the share of classes it kept."""

    new: float
    all: float
    kept: float


@dataclass(frozen=True)
class Difference:
    """A mean difference to none over draws, with its interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.mean:+.1f} [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"


@dataclass(frozen=True)
class SettingRow:
    """A setting over all draws; `n_better` counts those in which it beats none on New, `n_failed` those unanswered."""

    name: str
    new: float
    all: float
    kept: float
    new_difference: Difference
    all_difference: Difference
    n_draws: int
    n_better: int
    n_failed: int

    @property
    def is_clearly_better(self) -> bool:
        """Whether New rises beyond chance, in a setting that nearly always has an answer."""
        return self.new_difference.low > 0 and self.n_failed <= self.n_draws // 10


@dataclass(frozen=True)
class Diagnosis:
    """One row a setting, the one that wins ("none" means: use everything), and the verdict in words.

    `unanswered` are settings that found nothing to select in more than half of the draws.
    """

    rows: tuple[SettingRow, ...]
    unanswered: tuple[str, ...]
    winner: str
    verdict: str
    caveat: str
    n_draws: int
    n_classes: int
    n_new: int
    space: str
    level: float = LEVEL

    @staticmethod
    def of(
        outcomes: Mapping[str, Sequence[Outcome | None]], overlap: float, n_classes: int, n_new: int, space: str
    ) -> Diagnosis:
        """Sum up outcomes, one a draw for each setting. `overlap` widens the intervals, for draws share classes."""
        level = 1 - (1 - LEVEL) / max(1, len(outcomes) - 1)
        rows = [_row(name, found, outcomes[NONE], overlap, level) for name, found in outcomes.items()]
        answered = [row for row in rows if row is not None]
        best = max(
            answered, key=lambda row: (row.is_clearly_better, row.new_difference.mean if row.name != NONE else -1)
        )
        winner = best.name if best.is_clearly_better else NONE
        return Diagnosis(
            rows=tuple(sorted(answered, key=lambda row: -row.new_difference.mean)),
            unanswered=tuple(name for name, row in zip(outcomes, rows, strict=True) if row is None),
            winner=winner,
            verdict=_verdict(best, winner),
            caveat=CAVEAT[space],
            n_draws=len(outcomes[NONE]),
            n_classes=n_classes,
            n_new=n_new,
            space=space,
        )

    def how(self) -> str:
        """How it was found, in a sentence."""
        nothing = f" Without an answer: {'; '.join(self.unanswered)}." if self.unanswered else ""
        return (
            f"{self.n_draws} draws from {self.n_classes} classes of the pool, of which {self.n_new} that look like the "
            f"target played new ones and {self.n_new} old ones; intervals hold together at {100 * self.level:.0f} %."
            f"{nothing}"
        )

    def cells(self) -> list[tuple[object, ...]]:
        """The rows under COLUMNS."""
        return [
            (
                row.name,
                f"{100 * row.new:.1f}",
                str(row.new_difference),
                str(row.all_difference),
                f"{row.n_better} of {row.n_draws - row.n_failed}",
                round(100 * row.kept),
            )
            for row in self.rows
        ]

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON has them."""
        return asdict(self)


def _row(
    name: str, found: Sequence[Outcome | None], none: Sequence[Outcome | None], overlap: float, level: float
) -> SettingRow | None:
    pairs = [(mine, base) for mine, base in zip(found, none, strict=True) if mine is not None and base is not None]
    if len(pairs) < max(2, len(found) / 2):
        return None
    new = np.array([mine.new - base.new for mine, base in pairs])
    everywhere = np.array([mine.all - base.all for mine, base in pairs])
    return SettingRow(
        name=name,
        new=float(np.mean([mine.new for mine, _ in pairs])),
        all=float(np.mean([mine.all for mine, _ in pairs])),
        kept=float(np.mean([mine.kept for mine, _ in pairs])),
        new_difference=difference(new, overlap, level),
        all_difference=difference(everywhere, overlap, level),
        n_draws=len(found),
        n_better=int((new > 0).sum()),
        n_failed=len(found) - len(pairs),
    )


def difference(values: Float[Array, " draws"], overlap: float, level: float) -> Difference:
    """Mean and corrected resampled t interval of paired differences (Nadeau and Bengio, 2003).

    mean +- t s sqrt(1 / n + overlap), overlap = held-out over remaining classes
    """
    n = len(values)
    t = float(stdtrit(n - 1, 1 - (1 - level) / 2))
    half = t * float(values.std(ddof=1)) * math.sqrt(1 / n + overlap)
    mean = float(values.mean())
    return Difference(mean, mean - half, mean + half)


def _verdict(best: SettingRow, winner: str) -> str:
    if best.name == NONE:
        return "Use everything: no other setting had an answer."
    said = f"New {best.new_difference} points against everything, better in {best.n_better} of {best.n_draws} draws"
    if winner == NONE:
        return f"Use everything: no setting is clearly better. The nearest is {best.name}: {said}."
    return f"{winner} wins: {said}; All {best.all_difference}."
