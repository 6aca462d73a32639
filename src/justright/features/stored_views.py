"""What training reads: views of images after the frozen prefix, whether a bank stores them or not."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa
from jaxtyping import Int

from justright.data.image_set import ImageSet
from justright.data.transforms import Transform, transform_named
from justright.features.backbone import Backbone
from justright.features.cuts import Stored
from justright.features.view_work import ViewDrawer
from justright.utils.parallel import n_cores
from justright.utils.seeding import generator
from justright.utils.types import Array


class Views(ABC):
    """Views of images after the frozen prefix. Rows are positions in the image set it was made from.

    Parameters:
        backbone: whose prefix is applied.
        images: what the views are of.
        transform: how they are drawn, or its name: weak, strong or plain.
        seed: of the drawing.
        content_ids: `images.content_column()`, where it is known already.
    """

    def __init__(
        self,
        backbone: Backbone,
        images: ImageSet,
        transform: str | Transform = "weak",
        seed: int = 0,
        content_ids: pa.ChunkedArray | None = None,
    ):
        self.backbone, self.transform, self.seed = backbone, transform_named(transform), seed
        # a list may claim any id, so views are drawn for, and found by, what the files hold
        self.images = images.named_by(images.content_column() if content_ids is None else content_ids)
        self.ids = self.images.table["id"]
        self.drawer = ViewDrawer(self.transform, backbone.recipe, seed)

    @abstractmethod
    def batch(self, rows: Int[Array, " batch"], views: Int[Array, " batch"]) -> Stored:
        """What `backbone.suffix` takes, for one view of each row."""

    @abstractmethod
    def choose(self, epoch: int, step: int, n_images: int, n_views: int = 2) -> Int[Array, "views batch"]:
        """Which views a step uses: different ones for each image, the same for the same arguments."""


class FreshViews(Views):
    """The frozen prefix anew at every step, nothing stored: the public recipe to the letter."""

    def batch(self, rows: Int[Array, " batch"], views: Int[Array, " batch"]) -> Stored:
        """Draw the views now and push them through the prefix."""
        drawn = self.drawer.one_of_each(self.images, rows.tolist(), views.tolist(), n_cores())
        return self.backbone.prefix(drawn.to(self.backbone.device))

    def choose(self, epoch: int, step: int, n_images: int, n_views: int = 2) -> Int[Array, "views batch"]:
        """Views that no other step has."""
        return generator(self.seed, "views", epoch, step).integers(1 << 62, size=(n_views, n_images))
