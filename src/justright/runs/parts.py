"""What a run is made of: features, a counter, the config of a method."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from justright.data import ImageSet
from justright.discovery.methods import METHODS
from justright.engines import Engine
from justright.errors import JustrightError
from justright.estimation import COUNTERS
from justright.estimation.base import CategoryCounter
from justright.features.store import DamagedStoreError
from justright.features.store_header import StoreMismatchError
from justright.features.table import FeatureTable
from justright.progress import Track, silent
from justright.runs.given_features import GivenStores
from justright.runs.spec import RunSpec
from justright.settings import flat
from justright.types import UNLABELED, Array


def frozen_features(
    images: ImageSet,
    backbone: Any,
    path: Path,
    track: Track,
    stores: GivenStores | None = None,
    engine: Engine | None = None,
) -> FeatureTable:
    """Features before training: from stores that were given, found in the folder of the run, or computed into it."""
    from justright.features.cache import FeatureCache
    from justright.features.extract import extract
    from justright.files import home

    try:
        if stores is not None and (found := stores.copied(images, path)) is not None:
            return found
        return extract(images, backbone, path, cache=FeatureCache(), engine=engine, banks=home() / "banks", track=track)
    except StoreMismatchError as error:
        expected = "the same images, read by the same network, to go on with this run"
        advice = f"another --out, or delete {path.parent} to start anew"
        raise StoreMismatchError(error.came, expected=expected, advice=advice) from error
    except DamagedStoreError as error:
        raise DamagedStoreError(error.came, advice=f"delete {path}; it is computed again") from error


def fingerprints(pool: FeatureTable, target: FeatureTable) -> dict[str, Any]:
    """Fingerprints of the images that pool and target features were computed from."""
    return {"pool": dict(pool.header.data), "target": dict(target.header.data)}


class CounterInput(NamedTuple):
    """What the number of categories is estimated from: the arguments of `CategoryCounter.fit`."""

    features: Float[Array, "images dim"]
    labels: Int[Array, " images"]
    pool: tuple[Float[Array, "pool dim"], Int[Array, " pool"]] | None


def counter_input(pool: FeatureTable, target: FeatureTable, own: Collection[int]) -> CounterInput:
    """What a counter is given: labeled images of the target's own classes, then the target.

    Where it has none, the target is counted alone, and the pool tells what classes look like: K is that of the target.
    """
    if not own:
        return CounterInput(np.asarray(target.features), np.full(len(target), UNLABELED), (pool.features, pool.labels))
    rows = np.isin(pool.labels, list(own))
    features = np.concatenate([pool.features[rows], target.features])
    return CounterInput(features, np.concatenate([pool.labels[rows], np.full(len(target), UNLABELED)]), None)


def fitted_counter(name: str, given: CounterInput, seed: int, track: Track = silent) -> CategoryCounter:
    """The counter of this name after it has counted."""
    return COUNTERS[name](seed=seed).fit(given.features, given.labels, track, given.pool)


def counted(name: str, given: CounterInput, seed: int, track: Track = silent) -> dict[str, Any]:
    """What count.json says of an estimate: K, its interval and the curve it was read from."""
    counter = fitted_counter(name, given, seed, track)
    estimate = {
        "n_categories": counter.n_categories_,
        "interval": list(counter.interval()) if counter.is_interval_quick else None,
        "curve": counter.curve_.tolist(),
        "axes": list(counter.curve_axes),
    }
    n_classes = len(set(given.labels.tolist()) - {UNLABELED})
    return {"estimates": {name: estimate}, "labeled_classes": n_classes, "images": len(given.labels)}


def config_of(spec: RunSpec) -> Any:
    """The config of the method at the scale that was asked for, with the settings on top; seeds share the time.

    A setting that was asked for and would do nothing is refused.
    """
    config = METHODS[spec.method].config_class()
    if spec.scale == "small":
        config = config.small()
    if spec.scale == "paper":
        config = config.exact()
    made = config.with_settings(spec.settings)
    idle = made.without_effect()
    for name in flat(spec.settings):
        if name in idle:
            raise JustrightError(
                f"{name} does nothing in {spec.method}: {idle[name]}",
                expected="settings that have an effect",
                advice="leave it out",
            )
    if (minutes := getattr(made, "minutes", None)) is None:
        return made
    return config.with_settings(dict(spec.settings) | {"minutes": minutes / spec.n_seeds})
