"""How far reviewers agree. Groups are shared, opinions are not: each reviewer's are kept and compared.

What is compared: the verdict on a cluster (keep or reject), its name where both gave one, and right or wrong of the
same randomly drawn image. Cohen's kappa is 1 for full agreement and 0 for what chance would give.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import Any

import numpy as np

from justright.review.state import ReviewState


def agreement(state: ReviewState) -> list[dict[str, Any]]:
    """Every pair of reviewers who judged something in common: how many things, how many alike, and kappa."""
    found = []
    for what, said in _answers(state).items():
        for one, other in combinations(sorted({who for answers in said.values() for who in answers}), 2):
            if both := [(a[one], a[other]) for a in said.values() if one in a and other in a]:
                pair = {"reviewers": (one, other), "what": what, "n_both": len(both)}
                n_same = sum(first == second for first, second in both)
                found.append(pair | {"n_same": n_same, "kappa": cohen_kappa(both)})
    return found


def cohen_kappa(both: list[tuple[str, str]]) -> float | None:
    """(p_o - p_e) / (1 - p_e), p_o the share of equal answers, p_e the one expected by chance (Cohen, 1960).

    None where both gave one and the same answer throughout.
    """
    if len({answer for pair in both for answer in pair}) < 2:
        return None
    from sklearn.metrics import cohen_kappa_score  # slow to import, and one reviewer alone needs none

    first, second = zip(*both, strict=True)
    return float(cohen_kappa_score(first, second))


def disputes(state: ReviewState) -> list[dict[str, Any]]:
    """What reviewers judge differently, and who said what: clusters first, then images."""
    found = []
    for what, said in _answers(state).items():
        for thing, answers in said.items():
            if len(set(answers.values())) > 1:
                row = thing[1] if isinstance(thing, tuple) else None
                cluster = thing if row is None else int(state.group[row])
                name = state.name_of(cluster)
                found.append({"what": what, "cluster": cluster, "name": name, "row": row, "said": answers})
    return found


def _answers(state: ReviewState) -> dict[str, dict[Any, dict[str, str]]]:
    """By subject, then by thing judged (a cluster, or round and image), then by reviewer."""
    alive = set(np.unique(state.group).tolist())
    opinions = {cluster: said for cluster, said in sorted(state.opinions.items()) if cluster in alive}
    checks: defaultdict[tuple[int, int], dict[str, str]] = defaultdict(dict)
    for round_, verdicts in sorted(state.checks.items()):
        for (row, who), is_right in verdicts.items():
            checks[round_, row][who] = "right" if is_right else "wrong"
    return {
        "verdicts": {c: {who: each.verdict for who, each in said.items()} for c, said in opinions.items()},
        "names": {c: {who: each.name for who, each in said.items() if each.name} for c, said in opinions.items()},
        "checks": checks,
    }
