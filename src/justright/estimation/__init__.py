"""Estimators of the number of categories. They are imported on first use, so that help texts need no scipy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from justright.utils.registry import Registry

if TYPE_CHECKING:
    from justright.estimation.base import CategoryCounter

COUNTERS: Registry[type[CategoryCounter]] = Registry("counter")
COUNTERS.add("combined", "justright.estimation.combined:CombinedCounter", "one K from spread and mixture")
COUNTERS.add(
    "labeled-search",
    "justright.estimation.labeled_search:LabeledSearchCounter",
    "the K at which k-means agrees best with the labels (GCD)",
)
COUNTERS.add("mixture", "justright.estimation.mixture:MixtureCounter", "splits and merges Gaussians (GPC)")
COUNTERS.add("spread", "justright.estimation.spread:SpreadCounter", "the K whose clusters are as tight as classes")
BEST = "combined"  # the counter whose estimate is used if there are several
