"""What training reads: views of images after the frozen prefix, whether a bank stores them or not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from jaxtyping import Int

from justright.data.image_set import ImageSet
from justright.data.views import Transform, transform_named
from justright.errors import DataError
from justright.features.backbone import Backbone
from justright.features.cuts import Stored
from justright.features.drawing import ViewDrawer
from justright.progress import Track, silent
from justright.seeding import generator
from justright.types import Array

Rows = Sequence[int] | Int[Array, " rows"]


class Views(ABC):
    """Views of images after the frozen prefix. Rows are positions in the image set it was made from.

    Parameters:
        backbone: whose prefix is applied.
        images: what the views are of.
        transform: how they are drawn, or its name: weak, strong or plain.
        seed: of the drawing.
        rows: the images that can be read, all by default; the others cannot be asked for.
        n_threads: how many threads draw.
        batch_size: images that go through the prefix at once.
        content_ids: `images.content_column()`, where it is known already.
    """

    def __init__(
        self,
        backbone: Backbone,
        images: ImageSet,
        transform: str | Transform = "weak",
        seed: int = 0,
        rows: Rows | None = None,
        n_threads: int = 4,
        batch_size: int = 32,
        content_ids: pa.ChunkedArray | None = None,
    ):
        self.backbone = backbone
        self.transform = transform_named(transform)
        self.seed = seed
        self._position = None
        if rows is not None:
            good = np.asarray(rows, dtype=np.int64)
            self._position = np.full(len(images), -1)
            self._position[good] = np.arange(len(good))
            images, content_ids = images.take(good), None if content_ids is None else content_ids.take(pa.array(good))
        # a list may claim any id, so views are drawn for, and found by, what the files hold
        self.images = images.named_by(images.content_column() if content_ids is None else content_ids)
        self.batch_size = batch_size
        self.drawer = ViewDrawer(self.images, self.transform, backbone.recipe, seed, n_threads)

    @abstractmethod
    def batch(self, rows: Int[Array, " batch"], views: Int[Array, " batch"]) -> Stored:
        """What `backbone.suffix` takes, for one view of each row."""

    @abstractmethod
    def choose(self, epoch: int, step: int, n_images: int, n_views: int = 2) -> Int[Array, "views batch"]:
        """Which views a step uses: different ones for each image, the same for the same arguments."""

    @abstractmethod
    def refresh(self, epoch: int, track: Track = silent) -> None:
        """Prepare the views of an epoch."""

    def _positions(self, rows: Int[Array, " batch"]) -> Int[Array, " batch"]:
        if self._position is None:
            return rows
        positions = self._position[rows]
        if (positions < 0).any():
            raise DataError(f"rows {rows[positions < 0][:5].tolist()} have no views", expected="rows given as good")
        return positions


class FreshViews(Views):
    """The frozen prefix anew at every step, nothing stored: the public recipe to the letter."""

    def batch(self, rows: Int[Array, " batch"], views: Int[Array, " batch"]) -> Stored:
        """Draw the views now and push them through the prefix."""
        drawn = self.drawer.one_of_each(self._positions(rows).tolist(), views.tolist())
        return self.backbone.prefix(drawn.to(self.backbone.device))

    def choose(self, epoch: int, step: int, n_images: int, n_views: int = 2) -> Int[Array, "views batch"]:
        """Views that no other step has."""
        return generator(self.seed, "views", epoch, step).integers(1 << 62, size=(n_views, n_images))

    def refresh(self, epoch: int, track: Track = silent) -> None:
        """Every view is new anyway."""
