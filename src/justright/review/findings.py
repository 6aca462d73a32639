"""What a review has found by now, for whoever tells of the run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from justright.discovery.predictions import Predictions
from justright.evaluation import CheckedAccuracy
from justright.review.open_review import OpenReview, has_review
from justright.review.random_checks import accuracy, n_more_checks
from justright.review.state import REJECTED, ReviewState
from justright.runs.run_folder import RunFolder


@dataclass(frozen=True)
class ReviewedCluster:
    """What a review made of one cluster, as it is now."""

    name: str
    kind: str
    given_name: str | None  # the name, if a person gave it
    n_images: int
    status: str  # open, kept, rejected or disputed
    verdicts: Mapping[str, str]  # keep or reject, by reviewer
    other_names: Mapping[str, str]  # what a reviewer called it, where the name is another now
    elsewhere: tuple[tuple[str, int], ...] = ()  # names of clusters its images went to, and how many, the most first
    n_rejected: int = 0  # how many of its images belong nowhere


@dataclass(frozen=True)
class Review:
    """What people found in the clusters of a run."""

    reviewers: tuple[str, ...]  # everyone who did something
    n_clusters: int  # how many clusters there are now
    by_status: Mapping[str, int]  # how many of them are kept, rejected, disputed or open
    accuracy: CheckedAccuracy | None  # from random checks, if there were any
    clusters: Mapping[int, ReviewedCluster]  # by their number in the predictions
    made: tuple[ReviewedCluster, ...]  # those that came up in the review
    n_more_checks: int  # how many more random checks should tell the accuracy to 4 points


def findings(run: RunFolder) -> Review | None:
    """Names, verdicts and what became of each cluster; None where nobody has said anything.

    A log that is damaged or belongs to other predictions is a DataError.
    """
    if not has_review(run):
        return None
    opened = OpenReview(run)
    with opened.reading() as state:
        if not state.seq:
            return None
        alive = opened.lists.alive()
        clusters = _clusters(state, opened.predictions)
        n_predicted = len(opened.predictions.categories)
        return Review(
            reviewers=tuple(sorted({entry.line.by for entry in state.entries})),
            n_clusters=len(alive),
            by_status=Counter(map(state.status, alive)),
            accuracy=accuracy(state, opened.predictions.confidence),
            clusters={number: each for number, each in clusters.items() if number < n_predicted},
            made=tuple(each for number, each in clusters.items() if number >= n_predicted and each.n_images),
            n_more_checks=n_more_checks(state, opened.predictions.confidence),
        )


def _clusters(state: ReviewState, predictions: Predictions) -> dict[int, ReviewedCluster]:
    """Every cluster by number, also one that has lost all its images."""
    n_images = np.bincount(state.group[state.group != REJECTED], minlength=state.n_groups)
    elsewhere = _elsewhere(state, predictions)
    first = ReviewState(predictions, state.known_classes).labels
    found = {}
    for number, label in sorted(state.labels.items()):
        opinions = sorted(state.opinions.get(number, {}).items())
        found[number] = ReviewedCluster(
            name=label.name,
            kind=label.kind,
            given_name=label.name if label.is_named and label != first.get(number) else None,
            n_images=int(n_images[number]),
            status=state.status(number),
            verdicts={who: said.verdict for who, said in opinions},
            other_names={who: said.name for who, said in opinions if said.name not in (None, label.name)},
            elsewhere=tuple((state.labels[to].name, n) for to, n in elsewhere[number] if to != REJECTED),
            n_rejected=sum(n for to, n in elsewhere[number] if to == REJECTED),
        )
    return found


def _elsewhere(state: ReviewState, predictions: Predictions) -> defaultdict[int, list[tuple[int, int]]]:
    """By cluster of the predictions the groups that its images are in now, other than itself, and how many."""
    has_left = state.group != predictions.cluster
    ways = Counter(zip(predictions.cluster[has_left].tolist(), state.group[has_left].tolist(), strict=True))
    found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for (home, to), n in sorted(ways.items(), key=lambda way: (-way[1], way[0])):
        found[home].append((to, n))
    return found
