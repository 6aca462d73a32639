"""How many categories there are."""

from __future__ import annotations

from justright.estimation.base import CategoryCounter, PoolArrays
from justright.estimation.combined import CombinedCounter
from justright.estimation.labeled_search import LabeledSearchCounter
from justright.estimation.mixture import MixtureCounter
from justright.estimation.spread import SpreadCounter

COUNTERS: dict[str, type[CategoryCounter]] = {
    "combined": CombinedCounter,
    "labeled-search": LabeledSearchCounter,
    "mixture": MixtureCounter,
    "spread": SpreadCounter,
}

__all__ = [
    "COUNTERS",
    "CategoryCounter",
    "CombinedCounter",
    "LabeledSearchCounter",
    "MixtureCounter",
    "PoolArrays",
    "SpreadCounter",
]
