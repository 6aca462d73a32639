"""How many categories there are.

Counters are imported when they are used: names and help lines are read without scipy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from justright.estimation.base import CategoryCounter, PoolArrays
from justright.registry import Registry

if TYPE_CHECKING:
    from justright.estimation.combined import CombinedCounter
    from justright.estimation.labeled_search import LabeledSearchCounter
    from justright.estimation.mixture import MixtureCounter
    from justright.estimation.spread import SpreadCounter

COUNTERS: Registry[type[CategoryCounter]] = Registry("counter")
COUNTERS.add("combined", "justright.estimation.combined:CombinedCounter", "one K from spread and mixture")
COUNTERS.add(
    "labeled-search",
    "justright.estimation.labeled_search:LabeledSearchCounter",
    "the K at which k-means agrees best with the labels (GCD)",
)
COUNTERS.add("mixture", "justright.estimation.mixture:MixtureCounter", "splits and merges Gaussians (GPC)")
COUNTERS.add("spread", "justright.estimation.spread:SpreadCounter", "the K whose clusters are as tight as classes")

__all__ = [
    "COUNTERS",
    "CategoryCounter",
    "CombinedCounter",
    "LabeledSearchCounter",
    "MixtureCounter",
    "PoolArrays",
    "SpreadCounter",
]


def __getattr__(name: str) -> Any:
    for counter in COUNTERS.values() if name in __all__ else ():
        if counter.__name__ == name:
            return counter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
