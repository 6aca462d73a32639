"""The result of a diagnosis: each setting compared with own labels alone, and the one to choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from justright.evaluation.intervals import MeanDifference, mean_difference
from justright.evaluation.scores import LEVEL

OWN, EVERYTHING = "own", "none"
TITLES = {OWN: "own (no pool)", EVERYTHING: "none (the whole pool)"}
AHEAD = 7 / 8  # the whole pool is chosen unless another is better in this share of the draws: less is mostly luck
COLUMNS = ("setting", "All %", "New %", "All against own", "New against own", "better in draws", "images kept %")
CAVEAT = (
    "Linear discriminants replace a trained network, and hidden classes of your own replace unknown ones. The lead of "
    "one selection over another is often smaller than the difference between two seeds of training."
)


@dataclass(frozen=True)
class DrawScores:
    """One setting on one draw: accuracy on hidden classes and on all hidden images, share of pool images kept."""

    new: float
    all: float
    kept: float


Draws = Sequence[DrawScores | None]  # None if nothing could be learned


@dataclass(frozen=True)
class SettingMeans:
    """The means of a setting over all draws; `n_better` counts draws in which it beats own labels alone on All."""

    name: str
    all: float
    new: float
    kept: float
    all_difference: MeanDifference
    new_difference: MeanDifference
    n_draws: int
    n_better: int


@dataclass(frozen=True)
class Diagnosis:
    """The settings, best first, and the one to choose."""

    rows: tuple[SettingMeans, ...]  # one per setting, the best first
    unanswered: tuple[str, ...]  # settings that selected nothing, or from which nothing could be learned
    winner: str  # the setting to choose
    verdict: str  # a sentence with the reason
    n_draws: int
    n_classes: int
    n_hidden: int
    caveat: str = CAVEAT
    level: float = LEVEL

    @staticmethod
    def of(outcomes: Mapping[str, Draws], n_classes: int, n_hidden: int) -> Diagnosis:
        """Summarize outcomes, one per draw for each setting; each draw hid `n_hidden` of `n_classes` classes.

        The whole pool is the choice, unless others are ahead of it in nearly all draws; then the best of those is.
        If the whole pool is not among the settings, own labels alone replace it.
        """
        # draws share classes: Nadeau and Bengio (2003) widen the interval by hidden over remaining
        overlap = n_hidden / (n_classes - n_hidden)
        # all intervals hold together with the probability LEVEL, however many settings are compared (Bonferroni)
        level = 1 - (1 - LEVEL) / max(1, len(outcomes) - 1)
        answered = {name: draws for name, draws in outcomes.items() if None not in draws}
        rows = [_row(name, draws, outcomes[OWN], overlap, level) for name, draws in answered.items()]
        ranked = sorted(rows, key=lambda row: (-row.all, row.name != OWN))
        standard = EVERYTHING if EVERYTHING in answered else OWN
        ahead = {name: _n_ahead(draws, answered[standard]) for name, draws in answered.items()}
        clear = [row for row in ranked if ahead[row.name] >= AHEAD * row.n_draws]
        winner = clear[0] if clear else next(row for row in ranked if row.name == standard)
        return Diagnosis(
            rows=tuple(ranked),
            unanswered=tuple(name for name in outcomes if name not in answered),
            winner=winner.name,
            verdict=_verdict(winner, ranked, standard, ahead),
            n_draws=len(outcomes[OWN]),
            n_classes=n_classes,
            n_hidden=n_hidden,
        )

    def how(self) -> str:
        """A sentence about the method."""
        nothing = f" Without a result: {'; '.join(self.unanswered)}." if self.unanswered else ""
        return (
            f"{self.n_draws} draws, in each of which {self.n_hidden} of your {self.n_classes} labeled classes were "
            f"hidden and rediscovered; all intervals hold together at {100 * self.level:.0f} %.{nothing}"
        )

    def cells(self) -> list[tuple[object, ...]]:
        """The rows of a table with COLUMNS."""
        cells: list[tuple[object, ...]] = []
        for row in self.rows:
            against = row.all_difference, row.new_difference, f"{row.n_better} of {row.n_draws}"
            texts = ["" if row.name == OWN else str(value) for value in against]
            cells.append((row.name, f"{100 * row.all:.1f}", f"{100 * row.new:.1f}", *texts, round(100 * row.kept)))
        return cells

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return asdict(self)


def _row(name: str, draws: Draws, own: Draws, overlap: float, level: float) -> SettingMeans:
    pairs = [(mine, base) for mine, base in zip(draws, own, strict=True) if mine is not None and base is not None]
    new = np.array([mine.new - base.new for mine, base in pairs])
    everywhere = np.array([mine.all - base.all for mine, base in pairs])
    return SettingMeans(
        name=name,
        all=float(np.mean([mine.all for mine, _ in pairs])),
        new=float(np.mean([mine.new for mine, _ in pairs])),
        kept=float(np.mean([mine.kept for mine, _ in pairs])),
        all_difference=mean_difference(everywhere, level, overlap),
        new_difference=mean_difference(new, level, overlap),
        n_draws=len(draws),
        n_better=_n_ahead(draws, own),
    )


def _n_ahead(draws: Draws, others: Draws) -> int:
    """Number of draws in which one setting is ahead of another on All."""
    pairs = zip(draws, others, strict=True)
    return sum(mine.all > other.all for mine, other in pairs if mine is not None and other is not None)


def _verdict(winner: SettingMeans, ranked: Sequence[SettingMeans], standard: str, ahead: Mapping[str, int]) -> str:
    title, usual = TITLES.get(winner.name, winner.name), TITLES[standard]
    if len(ranked) == 1:
        return f"Take {title}: no other setting had a result."
    text = f"{100 * winner.all:.1f} % of hidden images are right"
    if winner.name != OWN:
        text += f", {winner.all_difference} points against own labels alone"
    if winner.name != standard:
        return f"Take {title}: {text}; ahead of {usual} in {ahead[winner.name]} of {winner.n_draws} draws."
    rival = next(row for row in ranked if row.name != winner.name)
    how_often = f"{ahead[rival.name]} of {rival.n_draws} draws"
    return f"Take {title}: {text}; no other is clearly ahead, {rival.name} in {how_often}."
