"""Views of images after the frozen prefix: how they are drawn, and how training reads them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float, Int
from torch import Tensor

from justright.data.image_set import ImageSet
from justright.data.transforms import (
    ImageRecipe,
    Pixels,
    Plain,
    Transform,
    describe,
    draw_view,
    to_pixels,
    transform_named,
)
from justright.features.backbone import Backbone
from justright.features.cache import Ids
from justright.features.choices import BATCH_SIZE, BankPrecision
from justright.features.cuts import Stored
from justright.utils.errors import BadImageError, DataError
from justright.utils.parallel import in_threads, n_cores
from justright.utils.seeding import generator
from justright.utils.types import Array

Batch = Float[Tensor, "batch 3 size size"]


@dataclass(frozen=True)
class ViewDrawer:
    """Draws views of images. The random numbers depend on seed, image id and the number of the view alone."""

    transform: Transform
    recipe: ImageRecipe
    seed: int

    def draw(self, images: ImageSet, rows: Sequence[int], numbers: Sequence[int], n_threads: int = 0) -> Batch:
        """One view of each row, with the number given for it. A row that occurs twice is decoded once."""
        distinct = list(dict.fromkeys(rows))
        pixels = dict(zip(distinct, in_threads(partial(_decode, images), distinct, n_threads), strict=True))

        def view(place: int) -> Tensor:
            row, number = rows[place], numbers[place]
            image_id = images.table["id"][row].as_py()
            return draw_view(pixels[row], self.transform, self.recipe, seed=self.seed, image_id=image_id, view=number)

        return torch.stack(list(in_threads(view, range(len(rows)), n_threads)))


def _decode(images: ImageSet, row: int) -> Pixels:
    try:
        return to_pixels(images.image(row))
    except BadImageError as error:
        advice = "leave it out: take the good rows alone"
        raise BadImageError(error.problem, error.kind, expected=error.expected, advice=advice) from error


def record_type(names: Sequence[str], shapes: Sequence[tuple[int, ...]], precision: BankPrecision) -> np.dtype[np.void]:
    """The layout of a stored view. The first tensor, which is large, has the precision; the others stay float32."""
    large, *small = zip(names, shapes, strict=True)
    fields = [(name, "<f4", shape) for name, shape in small]
    return np.dtype([*fields, (large[0], np.dtype(precision).newbyteorder("<").str, large[1])], align=True)


def pack(layout: np.dtype[np.void], names: Sequence[str], stored: Stored) -> Array:
    """A batch of views as records."""
    records = np.zeros(len(stored[0]), layout)  # padding is zero too: equal views, equal bytes
    for name, part in zip(names, stored, strict=True):
        with np.errstate(over="ignore"):  # checked in the next line
            records[name] = part.float().cpu().numpy()
        if layout[name].base == np.float16 and not np.isfinite(records[name]).all():
            raise DataError("activations too large for float16", expected="at most 65,504", advice="precision float32")
    return records


def unpack(records: Sequence[np.void], names: Sequence[str]) -> Stored:
    """A batch from one record per view, as float32."""
    layout = records[0].dtype
    parts = []
    for name in names:
        # Gathered by plain copies, then converted at once: one parallel region. A conversion per record would make
        # threads wait for each other at every view.
        gathered = np.empty((len(records), *layout[name].shape), layout[name].base)
        for place, record in zip(gathered, records, strict=True):
            place[...] = record[name]
        parts.append(torch.from_numpy(gathered).float())
    return tuple(parts)


def view_key(
    backbone: Backbone, transform: Transform, seed: int, precision: BankPrecision, batch_size: int = BATCH_SIZE
) -> tuple[dict[str, Any], dict[str, str]]:
    """The section of `KeptBanks` for views drawn in one way: all that their bytes depend on, and a summary."""
    drawn = {"transform": describe(transform)} | ({} if isinstance(transform, Plain) else {"seed": seed})
    key = {
        "backbone": backbone.name,
        "prefix_fingerprint": backbone.prefix_fingerprint,
        "runtime": backbone.runtime,
        "recipe": backbone.recipe.as_dict(),
        "tensors": dict(zip(backbone.stored_names, map(list, backbone.stored_shapes), strict=True)),
        "precision": precision,
        "batch_size": batch_size,
    }
    about = {"backbone": backbone.name, "transform": type(transform).__name__.lower(), "precision": precision}
    return key | drawn, about


def view_ids(ids: Ids, number: int) -> Ids:
    """The ids under which a section keeps one view of each image."""
    words = ids.view("<u8").reshape(-1, 2).copy()
    words[:, 1] += np.uint64(number)
    return words.reshape(-1).view("S16")


class Views(ABC):
    """Views of images after the frozen prefix. Rows are positions in the image set it was made from.

    Parameters:
        backbone: whose prefix is applied.
        images: the images to draw views of.
        transform: how views are drawn, or its name: weak, strong or plain.
        seed: of the random numbers.
        content_ids: `images.content_column()`, if it was computed before.
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
        # A table may claim any id. Views are drawn for, and looked up by, the content of the files.
        self.images = images.named_by(images.content_column() if content_ids is None else content_ids)
        self.ids = self.images.table["id"]
        self.drawer = ViewDrawer(self.transform, backbone.recipe, seed)

    @abstractmethod
    def batch(self, rows: Int[Array, " batch"], views: Int[Array, " batch"]) -> Stored:
        """The input of `backbone.suffix` for one view of each row."""

    @abstractmethod
    def choose(self, epoch: int, step: int, n_images: int, n_views: int = 2) -> Int[Array, "views batch"]:
        """Which views a step uses: different ones for each image, the same for the same arguments."""


class FreshViews(Views):
    """Computes the frozen prefix at every step and stores nothing, exactly as the published recipe."""

    def batch(self, rows: Int[Array, " batch"], views: Int[Array, " batch"]) -> Stored:
        """Draw the views now and apply the prefix."""
        drawn = self.drawer.draw(self.images, rows.tolist(), views.tolist(), n_cores())
        return self.backbone.prefix(drawn.to(self.backbone.device))

    def choose(self, epoch: int, step: int, n_images: int, n_views: int = 2) -> Int[Array, "views batch"]:
        """Views that no other step has."""
        return generator(self.seed, "views", epoch, step).integers(1 << 62, size=(n_views, n_images))
