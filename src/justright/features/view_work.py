"""Views of images, drawn by chance and brought through the frozen prefix.

`ViewWork` is what a worker of a view bank does, in a thread, in another process or on another machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float
from torch import Tensor

from justright.data.image_set import ImageSet
from justright.data.readers import Reader
from justright.data.transforms import ImageRecipe, Pixels, Transform, draw_view, to_pixels
from justright.features import bank_records
from justright.features.backbone import Backbone
from justright.features.workers import refuse_other_tools, tools
from justright.utils.errors import BadImageError
from justright.utils.types import Array

Batch = Float[Tensor, "batch 3 size size"]


@dataclass(frozen=True)
class ViewDrawer:
    """Draws views of images whose ids are known: chance depends on seed, id and the number of the view alone."""

    transform: Transform
    recipe: ImageRecipe
    seed: int

    def one_of_each(self, images: ImageSet, rows: Sequence[int], numbers: Sequence[int], n_threads: int) -> Batch:
        """One view of each row, that with its number. A row that comes twice is decoded once."""
        with ThreadPoolExecutor(n_threads) as threads:
            distinct = list(dict.fromkeys(rows))
            decoded = threads.map(lambda row: _decoded(images, row, row), distinct)
            pixels = dict(zip(distinct, decoded, strict=True))
            ids = [images.table["id"][row].as_py() for row in rows]
            return torch.stack(list(threads.map(self._draw, [pixels[row] for row in rows], ids, numbers)))

    def all_of_each(self, images: ImageSet, rows: Sequence[int], numbers: Sequence[int]) -> list[Batch]:
        """Every view of `numbers` of each image, one batch a number, drawn here; errors call the images `rows`."""
        ids = images.table["id"].to_pylist()
        decoded = [(_decoded(images, place, row), ids[place]) for place, row in enumerate(rows)]
        return [torch.stack([self._draw(*each, number) for each in decoded]) for number in numbers]

    def _draw(self, pixels: Pixels, image_id: str, number: int) -> Tensor:
        return draw_view(pixels, self.transform, self.recipe, seed=self.seed, image_id=image_id, view=number)


def _decoded(images: ImageSet, place: int, row: int) -> Pixels:
    try:
        return to_pixels(images.image(place))
    except BadImageError as error:
        raise BadImageError(
            f"image {row}: {error.problem}",
            error.kind,
            expected=error.expected,
            advice="leave it out: take the good rows alone",
        ) from error


class ViewTask(NamedTuple):
    """Images, their rows, and the numbers of the views to draw of each."""

    places: pa.Table
    rows: Sequence[int]
    numbers: Sequence[int]


@dataclass(frozen=True)
class ViewWork:
    """Draws views of a batch and, with a network on a CPU, computes what the bank stores of them.

    Another device computes in the calling process, by `records`.
    """

    readers: Mapping[str, Reader]
    drawer: ViewDrawer
    layout: np.dtype[np.void]
    backbone: Backbone | None
    tools: Mapping[str, str]  # what a worker has to compute with
    batch_size: int | None = None  # smaller batches are filled up to it, so that all have one shape

    def __call__(self, task: ViewTask) -> list[Array]:
        """One array for each view: records of the bank, or pixels."""
        images = ImageSet(task.places, self.readers)
        # a batch holds one view of the same rows whatever else is missing: rounding cannot depend on a kill
        drawn = [views.numpy() for views in self.drawer.all_of_each(images, task.rows, task.numbers)]
        if self.backbone is None:
            return drawn
        refuse_other_tools(tools(self.backbone.device, self.backbone.runtime), self.tools)
        return [self.records(self.backbone, views) for views in drawn]

    def records(self, backbone: Backbone, views: Array) -> Array:
        """Drawn views as a bank stores them."""
        n = len(views)
        if self.batch_size is not None and n < self.batch_size:
            views = np.concatenate([views, np.zeros((self.batch_size - n, *views.shape[1:]), views.dtype)])
        stored = backbone.prefix(torch.from_numpy(views).to(backbone.device))
        return bank_records.packed(self.layout, backbone.stored_names, stored)[:n]
