"""What a run is made of, from what its spec says: a counter, a selector, the config of a method."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from justright.benchmark.spec import RunSpec
from justright.estimation import CategoryCounter, LabeledSearchCounter, MixtureCounter
from justright.features.table import FeatureTable
from justright.selection import SELECTORS, Selector
from justright.types import UNLABELED, Array

FEWEST_IMAGES = 5
"""A category of fewer images on average is nothing that a search for K should consider."""


def counter_of(name: str, n_images: int, seed: int) -> CategoryCounter:
    """A counter of categories for a target of so many images."""
    if name == "mixture":
        return MixtureCounter(seed=seed)
    return LabeledSearchCounter(max_k=max(2, n_images // FEWEST_IMAGES), seed=seed)


def to_count(
    pool: FeatureTable, target: FeatureTable, own: Collection[int]
) -> tuple[Float[Array, "images dim"], Int[Array, " images"]]:
    """What a counter is given: labeled images, then the target's, and their labels.

    Of the pool only the target's own classes, where it has some: others say little about how wide those are.
    """
    rows = np.isin(pool.labels, list(own)) if own else np.ones(len(pool), dtype=bool)
    features = np.concatenate([pool.features[rows], target.features])
    return features, np.concatenate([pool.labels[rows], np.full(len(target), UNLABELED)])


def selector_of(name: str, params: Mapping[str, Any], n_clusters: int, seed: int) -> Selector:
    """A selector with the parameters that were given; K and seed where it has use for them."""
    known = inspect.signature(SELECTORS[name]).parameters
    by_itself = {key: value for key, value in (("n_clusters", n_clusters), ("seed", seed)) if key in known}
    return SELECTORS[name](**(by_itself | dict(params)))


def config_of(spec: RunSpec) -> Any:
    """The config of the method at the scale that was asked for, with the settings on top."""
    from justright.discovery.configs import TrainConfig, small, with_settings
    from justright.discovery.methods import METHODS

    config = METHODS[spec.method].config_class()
    settings = dict(spec.settings)
    if spec.scale == "small" and isinstance(config, TrainConfig):
        config = small(config, **({"n_epochs": settings["n_epochs"]} if "n_epochs" in settings else {}))
    return with_settings(config, settings)
