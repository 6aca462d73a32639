"""What people made of the clusters of a run: told by `review` and shown by `report`, which do not know each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from justright.evaluation import CheckedAccuracy


@dataclass(frozen=True)
class ReviewedCluster:
    """What a review made of one cluster.

    Attributes: name and kind, as they are now; given_name, the name if a person gave it; n_images, how many it has now;
    status, open, kept, rejected or disputed; verdicts, keep or reject by reviewer; other_names, what a reviewer called
    it where the name is another now; elsewhere, the clusters that its images went to, by name, and how many, the most
    first; n_rejected, how many of its images belong nowhere.
    """

    name: str
    kind: str
    given_name: str | None
    n_images: int
    status: str
    verdicts: Mapping[str, str]
    other_names: Mapping[str, str]
    elsewhere: tuple[tuple[str, int], ...] = ()
    n_rejected: int = 0


@dataclass(frozen=True)
class Review:
    """What people found in the clusters of a run.

    Attributes: reviewers; n_clusters, how many there are now, and by_status, how many of them are kept, rejected,
    disputed or open; accuracy, from random checks if there were any; clusters, by their number in the predictions;
    made, those that came up in the review.
    """

    reviewers: tuple[str, ...]
    n_clusters: int
    by_status: Mapping[str, int]
    accuracy: CheckedAccuracy | None
    clusters: Mapping[int, ReviewedCluster]
    made: tuple[ReviewedCluster, ...]
