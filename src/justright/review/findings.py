"""What a review has found by now, for whoever tells of the run."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from justright.discovery.predictions import Predictions
from justright.errors import DataError
from justright.review.accuracy import accuracy
from justright.review.actions import REJECTED
from justright.review.answers import status
from justright.review.open_review import OpenReview
from justright.review.reviewed import Review, ReviewedCluster
from justright.review.state import ReviewState
from justright.runs.run_folder import RunFolder


def findings(run: RunFolder) -> Review | None:
    """Names, verdicts and what became of each cluster; None where nobody has said anything.

    A log that is damaged or belongs to other predictions is a DataError.
    """
    path = run.review_log
    if path is None or not path.stat().st_size:
        return None
    try:
        opened = OpenReview(run)
    except (ValueError, RecursionError) as error:  # a line that was made by hand, with a checksum that is right
        raise DataError(f"{path} cannot be read: {error}") from error
    with opened.reading() as state:
        if not state.seq:
            raise DataError(f"{path} holds no whole action")
        told = status(opened, 0)
        clusters = _clusters(state, opened.predictions)
        n_predicted = len(opened.predictions.categories)
        return Review(
            reviewers=tuple(told["reviewers"]),
            n_clusters=told["n_clusters"],
            by_status=told["by_status"],
            accuracy=accuracy(state, opened.sheets.confidence),
            clusters={number: each for number, each in clusters.items() if number < n_predicted},
            made=tuple(each for number, each in clusters.items() if number >= n_predicted and each.n_images),
        )


def _clusters(state: ReviewState, predictions: Predictions) -> dict[int, ReviewedCluster]:
    """Every cluster by number, also one that has lost all its images."""
    n_images = np.bincount(state.group[state.group != REJECTED], minlength=state.n_groups)
    elsewhere = _elsewhere(state, predictions)
    first = ReviewState(predictions, state.known_classes).labels
    found = {}
    for number, label in sorted(state.labels.items()):
        opinions = state.opinions.get(number, {})
        found[number] = ReviewedCluster(
            name=label.name,
            kind=label.kind,
            given_name=label.name if label.is_named and label != first.get(number) else None,
            n_images=int(n_images[number]),
            status=state.status(number),
            verdicts={who: said.verdict for who, said in sorted(opinions.items())},
            other_names={
                who: said.name for who, said in sorted(opinions.items()) if said.name not in (None, label.name)
            },
            elsewhere=tuple((state.labels[to].name, n) for to, n in elsewhere[number] if to != REJECTED),
            n_rejected=sum(n for to, n in elsewhere[number] if to == REJECTED),
        )
    return found


def _elsewhere(state: ReviewState, predictions: Predictions) -> defaultdict[int, list[tuple[int, int]]]:
    """By cluster of the predictions the groups that its images are in now, other than itself, and how many."""
    has_left = state.group != predictions.cluster
    ways, n = np.unique(np.stack([predictions.cluster[has_left], state.group[has_left]]), axis=1, return_counts=True)
    found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for place in np.argsort(-n, kind="stable"):
        found[int(ways[0, place])].append((int(ways[1, place]), int(n[place])))
    return found
