"""Features that users provide, such as those of CLIP: a backbone without a network, and views of vectors."""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from justright.data.image_set import ImageSet
from justright.data.transforms import ImageRecipe, Plain, Strong
from justright.data.vectors import vectors_of
from justright.features.backbone import Backbone
from justright.features.bank import Views
from justright.features.cuts import Cut, Stored
from justright.features.extract import store_index
from justright.features.store import Header, data_fingerprint
from justright.features.table import FeatureTable
from justright.utils.errors import DataError
from justright.utils.hashing import hash_value
from justright.utils.remote import Place, place_of
from justright.utils.seeding import generator
from justright.utils.types import Array

NAME = "vectors"
N_VIEWS = 8  # of each vector
# Length of the noise of a view, as a multiple of the standard deviation of the data
NOISE, STRONG_NOISE = 0.3, 0.6


class VectorNetwork(Backbone):
    """The identity on vectors of `dim` numbers. Nothing of it is tuned: methods train their heads alone."""

    def __init__(self, dim: int, device: str = "cpu"):
        nn.Module.__init__(self)
        self.name, self.dim, self._device = NAME, dim, torch.device(device)
        self.recipe = ImageRecipe(resolution=dim, resize=dim)  # model files store the length in it
        self.model: Any = nn.Identity()
        self.cut = Cut(self.model)
        self.stored_names, self.stored_shapes = self.cut.names, ((dim,),)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dim} numbers)"

    @property
    def device(self) -> torch.device:
        """Where heads are trained."""
        return self._device

    @property
    def runtime(self) -> str:
        """No faster runtime is needed."""
        return "torch"

    def suffix(self, stored: Stored) -> Float[Tensor, "batch dim"]:
        """The vectors themselves."""
        return stored[0].to(self.device, torch.float32)

    @property
    def fingerprint(self) -> str:
        """Depends on the length only."""
        return hash_value([NAME, self.dim])

    @property
    def prefix_fingerprint(self) -> str:
        """Depends on the length only."""
        return self.fingerprint


def store_vectors(images: ImageSet, network: VectorNetwork, out: Place | str) -> FeatureTable:
    """Write the vectors of images into a store, as `extract` does with features."""
    place, ids = place_of(out), images.content_ids()
    rows = vectors_of(images) if len(images) else np.zeros((0, network.dim), np.float32)
    if rows.shape[1] != network.dim:
        raise DataError(f"vectors of {rows.shape[1]} numbers", expected=f"{network.dim}, as in the run")
    header = Header(
        shape=(network.dim,),
        dtype="float32",
        backbone={"name": NAME, "fingerprint": network.fingerprint, "pooling": "class"},
        transform=asdict(network.recipe),
        computation={"precision": "float32"},
        data=data_fingerprint(ids, images.table),
    )
    return FeatureTable(rows, store_index(images, ids, np.arange(len(images)), place), header).write(place)


class VectorViews(Views):
    """Views of vectors: each with noise of the shape of the data, or the vector itself under the plain transform.

        view = x + s (x_a - x_b) / sqrt(2),    a and b drawn among all images

    The differences have the covariance of the data, so noise is large along directions in which images differ.
    """

    purpose = "views of vectors"
    n_views = N_VIEWS

    @cached_property
    def vectors(self) -> Float[Array, "images dim"]:
        """The vectors of all images."""
        return vectors_of(self.images)

    def batch(self, rows: Int[Array, " batch"], views: Int[Array, " batch"]) -> Stored:
        """One view of each row."""
        drawn = self.vectors[rows].copy()
        if not isinstance(self.transform, Plain):
            scale = np.float32((STRONG_NOISE if isinstance(self.transform, Strong) else NOISE) / math.sqrt(2))
            for view in np.unique(views).tolist():
                is_view, (a, b) = views == view, self._pairs[view]
                chosen = rows[is_view]
                drawn[is_view] += scale * (self.vectors[a[chosen]] - self.vectors[b[chosen]])
        return (torch.from_numpy(drawn),)

    @cached_property
    def _pairs(self) -> list[tuple[Array, Array]]:
        """For each view the images a and b of every image."""
        n, pairs = len(self.vectors), []
        for view in range(N_VIEWS):
            rng = generator(self.seed, "noise of vectors", type(self.transform).__name__, view)
            pairs.append((rng.integers(n, size=n), rng.integers(n, size=n)))
        return pairs
