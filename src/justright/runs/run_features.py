"""Features of a run before training: copied from stores that `justright extract` wrote, or computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from justright.data import ImageSet
from justright.data.quarantine import MAX_BAD
from justright.features.bad_rows import Reasons, quarantined, reason_now
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
from justright.utils.parallel import Engine
from justright.utils.remote import Place
from justright.utils.types import Array


class GivenStores:
    """Feature stores that a user passes for the images of a run.

    All must come from the network of the run, and each must hold images of it. A set of images is in the stores
    completely or not at all.
    """

    def __init__(self, paths: Sequence[Place], backbone: Any, sets: Sequence[ImageSet]):
        self.sets = list(sets)
        self.header = expect_network(paths, backbone)
        self.tables = [FeatureTable.open(path) for path in paths]
        self.starts = np.cumsum([0, *map(len, self.tables)])[:-1]
        ids = (content for table in self.tables for content in table.ids)
        self.place = {content: place for place, content in enumerate(ids)}
        self.bad_paths = {each.path for table in self.tables for each in table.quarantined}
        self.contents = [images.content_ids(is_strict=False) for images in sets]
        self.places, self.bad = zip(*map(self._places, sets, self.contents), strict=True)
        used = set(self._table_of(np.concatenate(self.places)).tolist())
        for number, table in enumerate(self.tables):
            if number not in used:
                raise DataError(
                    f"{table.path} holds no image of this run",
                    expected="features of the images of --labeled, --pool or --target as they are now",
                    advice="leave it out, or extract these images again",
                )

    def copied(self, images: ImageSet, out: Path) -> FeatureTable | None:
        """Copy the features of one of the sets into a store; None if the stores have none of them."""
        from justright.features.extract import store_index

        number = next(number for number, each in enumerate(self.sets) if each is images)
        places, contents, bad = self.places[number], self.contents[number], self.bad[number]
        if (places < 0).all():
            return None
        good = places[places >= 0]
        used = [self.tables[number].header for number in np.unique(self._table_of(good))]
        origins = [{**each.computation, "content": each.data["content"]} for each in used]
        computation = {"precision": "float32", "copied_from": origins}
        header = replace(self.header, computation=computation, data=data_fingerprint(contents, images.table))
        if begin_store(out, header):
            return FeatureTable.open(out)
        blocks = (self._features(good[start : start + BLOCK_ROWS]) for start in range(0, len(good), BLOCK_ROWS))
        index = store_index(images, contents, np.flatnonzero(places >= 0), out)
        write_store(out, header, blocks, index, quarantined(images, bad))
        return FeatureTable.open(out, verify=False)

    def _places(self, images: ImageSet, contents: Sequence[str]) -> tuple[Int[Array, " images"], Reasons]:
        """The row of each image in the concatenated stores, -1 for a bad image; and the reason for each bad image.

        A store lists bad images by path, which an image of another source may share. So each is read again.
        """
        places = np.array([self.place.get(content, -1) for content in contents], dtype=np.int64)
        if not (places >= 0).any():
            return places, {}
        without = np.flatnonzero(places < 0).tolist()
        reasons = {row: reason_now(images, row) for row in without if images.paths[row] in self.bad_paths}
        bad = {row: reason for row, reason in reasons.items() if reason is not None}
        if missing := [row for row in without if row not in bad]:
            raise DataError(
                f"the given features lack {len(missing):,} of {len(images):,} images of "
                f"{', '.join(images.datasets)}, such as {images.paths[missing[0]]}",
                expected="features of all labeled images (--labeled and --pool), and of all of the target, or of none",
                advice="extract the images that are missing, and give those features too",
            )
        return places, bad

    def _table_of(self, places: Int[Array, " rows"]) -> Int[Array, " rows"]:
        """The number of the store that has each row; -1 for -1."""
        return np.searchsorted(self.starts, places, side="right") - 1

    def _features(self, places: Int[Array, " rows"]) -> Any:
        of = self._table_of(places)
        found = np.empty((len(places), *self.header.shape), self.header.dtype)
        for number in np.unique(of):
            found[of == number] = self.tables[number].features[places[of == number] - self.starts[number]]
        return found


def expect_network(paths: Sequence[Place], backbone: Any) -> Header:
    """The header of features of this network. Raises for stores of another network, from their headers alone."""
    from justright.features.choices import BATCH_SIZE
    from justright.features.feature_network import FeatureNetwork

    header = Header(**FeatureNetwork(backbone, BATCH_SIZE, "float32", "class").key())
    for path in paths:
        _check_header(path, read_header(path)[0], header)
    return header


def _check_header(path: Place, there: Header, header: Header) -> None:
    """Raise for features of another network, and for features whose images are not identified by content."""
    lines = there.differences(header, ("shape", "dtype", *COMPARABLE))
    if (precision := there.computation.get("precision")) != "float32":
        lines.append(f"computation.precision: {precision}, float32")
    if lines:
        raise StoreMismatchError(
            f"{path} holds features that this run would not compute. What differs (there, here):\n" + indented(lines),
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
    stores: GivenStores | None,
    engine: Engine | None,
    max_bad: float = MAX_BAD,
) -> FeatureTable:
    """Features before training: copied from given stores, read from the folder of the run, or computed."""
    from justright.features.cache import FeatureCache
    from justright.features.extract import extract
    from justright.features.vectors import VectorNetwork
    from justright.utils.files import home

    try:
        if stores is not None and (found := stores.copied(images, path)) is not None:
            return found
        if not len(images) and not isinstance(backbone, VectorNetwork):
            return _empty_store(images, backbone, path)
        how: dict[str, Any] = {"cache": FeatureCache(), "engine": engine, "banks": home() / "banks"}
        return extract(images, backbone, path, max_bad=max_bad, **how)
    except StoreMismatchError as error:
        expected = "the same images and the same network, to resume this run"
        advice = f"another --out, or delete {path.parent} to start again"
        raise StoreMismatchError(error.problem, expected=expected, advice=advice) from error
    except DamagedStoreError as error:
        raise DamagedStoreError(error.problem, advice=f"delete {path}; it is computed again") from error


def _empty_store(images: ImageSet, backbone: Any, path: Path) -> FeatureTable:
    """The features of a pool that has no images, where nothing is labeled."""
    from justright.features.choices import BATCH_SIZE
    from justright.features.extract import store_index
    from justright.features.feature_network import FeatureNetwork

    key = FeatureNetwork(backbone, BATCH_SIZE, "float32", "class").key()
    header = Header(**key, data=data_fingerprint([], images.table))
    if not begin_store(path, header):
        write_store(path, header, [], store_index(images, [], np.zeros(0, dtype=np.int64), path))
    return FeatureTable.open(path, verify=False)


def fingerprints(pool: FeatureTable, target: FeatureTable) -> dict[str, Any]:
    """Fingerprints of the images that pool and target features were computed from."""
    return {"pool": dict(pool.header.data), "target": dict(target.header.data)}
