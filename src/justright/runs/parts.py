"""What a run is made of, from what its spec says: a counter, a selector, the config of a method."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from justright.discovery.methods import METHODS
from justright.estimation import COUNTERS, CategoryCounter
from justright.features.table import FeatureTable
from justright.progress import Track, silent
from justright.runs.spec import RunSpec
from justright.selection import SELECTORS, Selector
from justright.types import UNLABELED, Array


class ToCount(NamedTuple):
    """What the number of categories is estimated from: see `CategoryCounter.fit`."""

    features: Float[Array, "images dim"]
    labels: Int[Array, " images"]
    pool: tuple[Float[Array, "pool dim"], Int[Array, " pool"]] | None

    def by(self, name: str, seed: int, track: Track = silent) -> CategoryCounter:
        """A counter that has counted."""
        return COUNTERS[name](seed=seed).fit(self.features, self.labels, track, self.pool)  # type: ignore[call-arg]


def to_count(pool: FeatureTable, target: FeatureTable, own: Collection[int]) -> ToCount:
    """What a counter is given: labeled images of the target's own classes, then the target.

    Where it has none, the target is counted alone, and the pool tells what classes look like: K is that of the target.
    """
    if not own:
        return ToCount(np.asarray(target.features), np.full(len(target), UNLABELED), (pool.features, pool.labels))
    rows = np.isin(pool.labels, list(own))
    features = np.concatenate([pool.features[rows], target.features])
    return ToCount(features, np.concatenate([pool.labels[rows], np.full(len(target), UNLABELED)]), None)


def selector_of(name: str, params: Mapping[str, Any], n_clusters: int, seed: int) -> Selector:
    """A selector with the parameters that were given; K and seed where it has use for them."""
    known = inspect.signature(SELECTORS[name]).parameters
    by_itself = {key: value for key, value in (("n_clusters", n_clusters), ("seed", seed)) if key in known}
    return SELECTORS[name](**(by_itself | dict(params)))


def config_of(spec: RunSpec) -> Any:
    """The config of the method at the scale that was asked for, with the settings on top."""
    config = METHODS[spec.method].config_class()
    if spec.scale == "small":
        config = config.small(spec.settings["n_epochs"]) if "n_epochs" in spec.settings else config.small()
    return config.with_settings(spec.settings)
