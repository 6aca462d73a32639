"""Features of a run before training: read from stores that `justright extract` wrote, or computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from justright.data import ImageSet
from justright.data.quarantine import MAX_BAD
from justright.features.cache import FeatureCache, Section, digests
from justright.features.store import (
    COMPARABLE,
    DamagedStoreError,
    Header,
    StoreMismatchError,
    begin_store,
    data_fingerprint,
    indented,
    read_header,
    write_store,
)
from justright.features.table import BLOCK_ROWS, FeatureTable
from justright.utils.errors import DataError
from justright.utils.remote import Place


class StoresAndCache(FeatureCache):
    """The cache of features, which takes over those of stores that a user passes for the images of a run.

    All stores must come from the network of the run, and each must hold images of it. Images that they lack are
    computed.
    """

    def __init__(self, paths: Sequence[Place], backbone: Any, sets: Sequence[ImageSet]):
        super().__init__()
        expect_network(paths, backbone)
        self.tables = [FeatureTable.open(path) for path in paths]
        contents = {content for images in sets for content in images.content_ids(is_strict=False)}
        for table in self.tables:
            if contents.isdisjoint(table.ids):
                raise DataError(
                    f"{table.path} holds no image of this run",
                    expected="features of the images of --labeled, --pool or --target as they are now",
                    advice="leave it out, or extract these images again",
                )

    def section(self, key: Mapping[str, Any], about: Mapping[str, str]) -> Section:
        """The features of one network, with those of the stores."""
        section = super().section(key, about)
        with section.lease():  # nothing is deleted, even if the cache is smaller than the stores
            for table in self.tables:
                ids = digests(table.ids)
                for start in range(0, len(ids), BLOCK_ROWS):
                    rows = start + np.flatnonzero(~section.holds(ids[start : start + BLOCK_ROWS]))
                    section.add(ids[rows], np.asarray(table.features[rows]))
            section.flush()
        return section


def expect_network(paths: Sequence[Place], backbone: Any) -> None:
    """Raise for stores of another network, and for those whose images are not identified by content."""
    from justright.features.choices import BATCH_SIZE
    from justright.features.extract import FeatureNetwork

    if not paths:
        return
    header = Header(**FeatureNetwork(backbone, BATCH_SIZE, "float32", "class").key())
    for path in paths:
        there = read_header(path)[0]
        lines = there.differences(header, ("shape", "dtype", *COMPARABLE))
        if (precision := there.computation.get("precision")) != "float32":
            lines.append(f"computation.precision: {precision}, float32")
        if lines:
            raise StoreMismatchError(
                f"{path} holds features that this run would not compute. What differs (there, here):\n"
                + indented(lines),
                advice="the --backbone, --checkpoint and --img-size that they were extracted with, or leave them out",
            )
        if "ids" in there.data:
            raise StoreMismatchError(
                f"the images of {path} have ids from a list, not from their content",
                expected="features of a source without ids of its own",
                advice="leave them out: they are in the cache and are not computed again",
            )


def frozen_features(
    images: ImageSet,
    backbone: Any,
    path: Path,
    cache: FeatureCache,
    max_bad: float = MAX_BAD,
    keeps_views: bool = True,
) -> FeatureTable:
    """Features before training: read from the folder of the run, from stores or the cache, or computed.

    keeps_views: store the plain views that are computed on the way, for features after training.
    """
    from justright.features.extract import extract
    from justright.features.vectors import VectorNetwork
    from justright.utils.files import home

    try:
        if not len(images) and not isinstance(backbone, VectorNetwork):
            return _empty_store(images, backbone, path)
        banks = home() / "banks" if keeps_views else None
        return extract(images, backbone, path, max_bad=max_bad, cache=cache, banks=banks)
    except StoreMismatchError as error:
        expected = "the same images and the same network, to resume this run"
        advice = f"another --out, or delete {path.parent} to start again"
        raise StoreMismatchError(error.problem, expected=expected, advice=advice) from error
    except DamagedStoreError as error:
        raise DamagedStoreError(error.problem, advice=f"delete {path}; it is recomputed") from error


def _empty_store(images: ImageSet, backbone: Any, path: Path) -> FeatureTable:
    """The features of a pool that has no images, where nothing is labeled."""
    from justright.features.choices import BATCH_SIZE
    from justright.features.extract import FeatureNetwork, store_index

    key = FeatureNetwork(backbone, BATCH_SIZE, "float32", "class").key()
    header = Header(**key, data=data_fingerprint([], images.table))
    if not begin_store(path, header):
        write_store(path, header, [], store_index(images, [], np.zeros(0, dtype=np.int64), path))
    return FeatureTable.open(path, verify=False)


def fingerprints(pool: FeatureTable, target: FeatureTable) -> dict[str, Any]:
    """Fingerprints of the images that pool and target features were computed from."""
    return {"pool": dict(pool.header.data), "target": dict(target.header.data)}
