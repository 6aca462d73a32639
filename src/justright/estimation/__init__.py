"""How many categories there are."""

from __future__ import annotations

from justright.estimation.base import CategoryCounter
from justright.estimation.labeled_search import LabeledSearchCounter
from justright.estimation.mixture import MixtureCounter

COUNTERS: dict[str, type[CategoryCounter]] = {"labeled-search": LabeledSearchCounter, "mixture": MixtureCounter}

__all__ = ["COUNTERS", "CategoryCounter", "LabeledSearchCounter", "MixtureCounter"]
