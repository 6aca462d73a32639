"""The results of a review so far, and the agreement between its reviewers.

Groups are shared by all reviewers, opinions are not: verdicts on clusters (keep or reject), names where both gave one,
and judgments of the same random image are compared. Cohen's kappa is 1 for full agreement and 0 for chance.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from justright.discovery.predictions import Predictions
from justright.evaluation import CheckedAccuracy
from justright.review.open_review import OpenReview
from justright.review.random_checks import accuracy, n_checks_needed
from justright.review.state import REJECTED, ReviewState
from justright.runs.run_folder import RunFolder


@dataclass(frozen=True)
class ReviewedCluster:
    """The current state of one cluster."""

    name: str
    kind: str
    given_name: str | None  # the name, if a reviewer chose it
    n_images: int
    status: str  # open, kept, rejected or disputed
    verdicts: Mapping[str, str]  # keep or reject, by reviewer
    other_names: Mapping[str, str]  # by reviewer: a name other than the current one
    elsewhere: tuple[tuple[str, int], ...] = ()  # clusters its images moved to, and how many, largest first
    n_rejected: int = 0  # number of its images that were rejected

    @property
    def merged_into(self) -> str | None:
        """The one other cluster that has all of its images now."""
        is_merged = not self.n_images and not self.n_rejected and len(self.elsewhere) == 1
        return self.elsewhere[0][0] if is_merged else None


@dataclass(frozen=True)
class Review:
    """The results of a review."""

    reviewers: tuple[str, ...]  # reviewers with at least one action
    n_clusters: int  # current number of clusters
    by_status: Mapping[str, int]  # number of clusters kept, rejected, disputed or open
    accuracy: CheckedAccuracy | None  # from random checks, if there were any
    clusters: Mapping[int, ReviewedCluster]  # by their number in the predictions
    made: tuple[ReviewedCluster, ...]  # clusters created in the review
    n_more_checks: int  # expected number of checks until the accuracy is known within 4 points


def findings(run: RunFolder) -> Review | None:
    """Summarize the review of a run; None if there are no actions. DataError if its log is damaged or does not fit."""
    if not any((run.path / "review" / name).exists() for name in ("log.jsonl", "saved.json")):
        return None
    opened = OpenReview(run)
    with opened.reading() as state:
        if not state.seq:
            return None
        alive = opened.lists.alive()
        confidence = opened.predictions.confidence
        estimate = accuracy(state, confidence)
        clusters = _clusters(state, opened.predictions)
        n_predicted = len(opened.predictions.categories)
        return Review(
            reviewers=tuple(sorted({entry.line.by for entry in state.entries})),
            n_clusters=len(alive),
            by_status=Counter(map(state.status, alive)),
            accuracy=estimate,
            clusters={number: each for number, each in clusters.items() if number < n_predicted},
            made=tuple(each for number, each in clusters.items() if number >= n_predicted and each.n_images),
            n_more_checks=estimate.n_more if estimate else n_checks_needed(state, confidence),
        )


def _clusters(state: ReviewState, predictions: Predictions) -> dict[int, ReviewedCluster]:
    """Every cluster by number, including those without images."""
    n_images = np.bincount(state.group[state.group != REJECTED], minlength=state.n_groups)
    elsewhere = _elsewhere(state, predictions)
    first = ReviewState(predictions, state.known_classes).labels
    reviewed = {}
    for number, label in sorted(state.labels.items()):
        opinions = sorted(state.opinions.get(number, {}).items())
        reviewed[number] = ReviewedCluster(
            name=label.name,
            kind=label.kind,
            given_name=label.name if label.is_named and label != first.get(number) else None,
            n_images=int(n_images[number]),
            status=state.status(number),
            verdicts={who: opinion.verdict for who, opinion in opinions},
            other_names={who: opinion.name for who, opinion in opinions if opinion.name not in (None, label.name)},
            elsewhere=tuple((state.labels[to].name, n) for to, n in elsewhere[number] if to != REJECTED),
            n_rejected=sum(n for to, n in elsewhere[number] if to == REJECTED),
        )
    return reviewed


def _elsewhere(state: ReviewState, predictions: Predictions) -> defaultdict[int, list[tuple[int, int]]]:
    """For each predicted cluster, the other groups its images are in now, and how many."""
    has_left = state.group != predictions.cluster
    moves = Counter(zip(predictions.cluster[has_left].tolist(), state.group[has_left].tolist(), strict=True))
    elsewhere: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for (cluster, to), n in sorted(moves.items(), key=lambda item: (-item[1], item[0])):
        elsewhere[cluster].append((to, n))
    return elsewhere


def agreement(state: ReviewState) -> list[dict[str, Any]]:
    """For each pair of reviewers who judged the same things: number judged by both, number of equal answers, kappa."""
    pairs = []
    for what, things in _answers(state).items():
        for one, other in combinations(sorted({who for answers in things.values() for who in answers}), 2):
            if both := [(a[one], a[other]) for a in things.values() if one in a and other in a]:
                pair = {"reviewers": (one, other), "what": what, "n_both": len(both)}
                n_same = sum(first == second for first, second in both)
                pairs.append(pair | {"n_same": n_same, "kappa": cohen_kappa(both)})
    return pairs


def cohen_kappa(both: list[tuple[str, str]]) -> float | None:
    """(p_o - p_e) / (1 - p_e): p_o is the share of equal answers, p_e its expectation by chance (Cohen, 1960).

    None if all answers are the same.
    """
    if len({answer for pair in both for answer in pair}) < 2:
        return None
    from sklearn.metrics import cohen_kappa_score  # slow to import

    first, second = zip(*both, strict=True)
    return float(cohen_kappa_score(first, second))


def disputes(state: ReviewState) -> list[dict[str, Any]]:
    """Clusters and images that reviewers judge differently, with all answers; clusters first."""
    disputed = []
    for what, things in _answers(state).items():
        for thing, answers in things.items():
            if len(set(answers.values())) > 1:
                row = thing[1] if isinstance(thing, tuple) else None
                cluster = thing if row is None else int(state.group[row])
                name = state.name_of(cluster)
                disputed.append({"what": what, "cluster": cluster, "name": name, "row": row, "answers": answers})
    return disputed


def _answers(state: ReviewState) -> dict[str, dict[Any, dict[str, str]]]:
    """By subject, then by thing judged (a cluster, or round and image), then by reviewer."""
    alive = set(np.unique(state.group).tolist())
    opinions = {cluster: by_reviewer for cluster, by_reviewer in sorted(state.opinions.items()) if cluster in alive}
    checks: defaultdict[tuple[int, int], dict[str, str]] = defaultdict(dict)
    for round_, verdicts in sorted(state.checks.items()):
        for (row, who), is_right in verdicts.items():
            checks[round_, row][who] = "right" if is_right else "wrong"
    return {
        "verdicts": {
            c: {who: each.verdict for who, each in by_reviewer.items()} for c, by_reviewer in opinions.items()
        },
        "names": {
            c: {who: each.name for who, each in by_reviewer.items() if each.name} for c, by_reviewer in opinions.items()
        },
        "checks": checks,
    }
