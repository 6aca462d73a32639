"""Several runs, one answer: clusters of different seeds matched to each other, then a vote for each image.

Known classes have the same name in every run. Discovered clusters have none: those of each run are matched one to one
to the clusters of a reference, so that most images agree, and the vote becomes the next reference until nothing moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment

from justright.discovery.predictions import Predictions
from justright.utils.errors import DataError
from justright.utils.types import Array

MAX_ROUNDS = 20  # of matching and voting; a handful is enough, the limit only rules out going in circles


@dataclass(frozen=True, eq=False)
class Consensus:
    """What several runs say together, one entry an image."""

    predictions: Predictions  # categories as in the reference run; the confidence is the mean, 0 from who disagrees
    agreement: Float[Array, " images"]  # the share of runs that put the image where the vote puts it
    reference: int  # the run that agrees best with the others; its categories give the numbers


def consensus(runs: Sequence[Predictions]) -> Consensus:
    """The vote of runs over the same images with the same known classes, each vote counted by its confidence."""
    _refuse_unlike(runs)
    n_known = sum(category.kind == "known" for category in runs[0].categories)
    n_of = [len(run.categories) for run in runs]
    clusters = [run.cluster for run in runs]
    every = range(len(runs))
    agreeing = [  # a row for each run whose numbers are taken, a column for each that is compared with it
        [np.mean(_renamed(clusters[b], n_of[b], clusters[a], n_of[a], n_known) == clusters[a]) for b in every]
        for a in every
    ]
    reference = int(np.argmax(np.sum(agreeing, axis=1)))  # of equals the first
    voted, n_categories = clusters[reference], n_of[reference]
    confidence = np.stack([np.where(run.is_neither, 0.0, run.confidence) for run in runs])
    for _ in range(MAX_ROUNDS):
        named = np.stack([_renamed(clusters[a], n_of[a], voted, n_categories, n_known) for a in every])
        candidates = np.concatenate([voted[None], named])  # of equals the one before stays, so rounds end
        # a vote counts 1 and its confidence, so that a tie in number goes to the surer side
        votes = np.stack([((named == each) * (1 + confidence)).sum(axis=0) for each in candidates])
        votes[candidates == n_categories] = -1  # clusters that match none
        moved, voted = voted, candidates[votes.argmax(axis=0), np.arange(len(voted))]
        if (moved == voted).all():
            break
    agrees = named == voted
    found = Predictions(
        runs[reference].index,
        voted,
        np.where(agrees, confidence, 0.0).mean(axis=0).astype(np.float32),
        np.mean([run.is_neither for run in runs], axis=0) > 0.5,
        runs[reference].categories,
        runs[reference].is_given,
    )
    return Consensus(found, agrees.mean(axis=0), reference)


def _renamed(
    clusters: Int[Array, " images"], n: int, reference: Int[Array, " images"], n_reference: int, n_known: int
) -> Int[Array, " images"]:
    """Clusters under the numbers of the reference; one that matches none gets the number after the last."""
    shared = np.zeros((n, n_reference), dtype=np.int64)
    np.add.at(shared, (clusters, reference), 1)
    row, column = linear_sum_assignment(shared[n_known:, n_known:], maximize=True)
    name = np.full(n, n_reference)
    name[:n_known] = np.arange(n_known)
    name[row + n_known] = column + n_known
    return name[clusters]


def _refuse_unlike(runs: Sequence[Predictions]) -> None:
    if len(runs) < 2:
        raise DataError(f"a consensus of {len(runs)} runs", expected="at least two")
    known = [[category.name for category in run.categories if category.kind == "known"] for run in runs]
    if any(names != known[0] for names in known):
        raise DataError("runs with other known classes", expected="the same labeled classes in each")
    if any(run.ids != runs[0].ids for run in runs):
        raise DataError("runs over other images", expected="the same target in each")
