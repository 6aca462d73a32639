"""How good is a clustering: accuracy, errors, and what a person's spot checks say."""

from __future__ import annotations

from justright.evaluation.accuracy import evaluate
from justright.evaluation.checked import CheckedAccuracy, estimate_accuracy
from justright.evaluation.confusions import Errors, break_down, matched_confusion
from justright.evaluation.counts import Counts
from justright.evaluation.matching import match_clusters, match_counts
from justright.evaluation.scores import PROTOCOLS, Protocol, Scores

__all__ = [
    "PROTOCOLS",
    "CheckedAccuracy",
    "Counts",
    "Errors",
    "Protocol",
    "Scores",
    "break_down",
    "estimate_accuracy",
    "evaluate",
    "match_clusters",
    "match_counts",
    "matched_confusion",
]
