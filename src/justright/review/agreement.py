"""How far reviewers agree. Groups are shared, opinions are not: each reviewer's are kept and compared.

What is compared: the verdict on a cluster (keep or reject), its name where both gave one, and right or wrong of the
same randomly drawn image. Cohen's kappa is 1 for full agreement and 0 for what chance would give.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from justright.review.state import ReviewState


@dataclass(frozen=True)
class Pair:
    """Two reviewers on the things both judged; kappa is None where both gave one and the same answer throughout."""

    reviewers: tuple[str, str]
    what: str
    n_both: int
    n_same: int
    kappa: float | None


@dataclass(frozen=True)
class Dispute:
    """A cluster or an image that reviewers judge differently: who said what."""

    what: str
    cluster: int
    row: int | None
    said: dict[str, str]


def agreement(state: ReviewState) -> list[Pair]:
    """Every pair of reviewers who judged something in common."""
    found = []
    for what, said in _answers(state).items():
        reviewers = sorted({who for answers in said.values() for who in answers})
        for pair in combinations(reviewers, 2):
            both = [
                (answers[pair[0]], answers[pair[1]])
                for answers in said.values()
                if pair[0] in answers and pair[1] in answers
            ]
            if both:
                n_same = sum(a == b for a, b in both)
                found.append(Pair(pair, what, len(both), n_same, cohen_kappa(both)))
    return found


def cohen_kappa(both: list[tuple[str, str]]) -> float | None:
    """(p_o - p_e) / (1 - p_e), p_o the share of equal answers, p_e the one expected by chance (Cohen, 1960)."""
    answers = sorted({answer for pair in both for answer in pair})
    if len(answers) < 2:
        return None
    from sklearn.metrics import cohen_kappa_score  # slow to import, and one reviewer alone needs none

    first, second = zip(*both, strict=True)
    kappa = float(cohen_kappa_score(first, second, labels=answers))
    return kappa if np.isfinite(kappa) else None


def disputes(state: ReviewState) -> list[Dispute]:
    """What reviewers judge differently: clusters first, then images."""
    found = []
    for what, said in _answers(state).items():
        for key, answers in said.items():
            if len(set(answers.values())) > 1:
                if what == "checks":
                    row = key[1]
                    found.append(Dispute(what, int(state.group[row]), row, dict(answers)))
                else:
                    found.append(Dispute(what, key, None, dict(answers)))
    return found


def _answers(state: ReviewState) -> dict[str, Mapping[Any, dict[str, str]]]:
    """By subject, then by thing judged, then by reviewer."""
    verdicts: dict[Hashable, dict[str, str]] = {}
    names: dict[Hashable, dict[str, str]] = {}
    alive = set(np.unique(state.group).tolist())
    for cluster, opinions in sorted(state.opinions.items()):
        if cluster in alive:
            verdicts[cluster] = {who: opinion.verdict for who, opinion in opinions.items()}
            names[cluster] = {who: opinion.name for who, opinion in opinions.items() if opinion.name is not None}
    checks: dict[Hashable, dict[str, str]] = {}
    for round_, said in sorted(state.checks.items()):
        for (row, who), is_right in said.items():
            checks.setdefault((round_, row), {})[who] = "right" if is_right else "wrong"
    return {"verdicts": verdicts, "names": names, "checks": checks}
