"""What a worker of a view bank does, in a thread, in another process or on another machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch

from justright.data.image_set import ImageSet
from justright.data.readers import Reader
from justright.data.recipe import ImageRecipe
from justright.data.views import Transform
from justright.features import bank_records
from justright.features.backbone import Backbone
from justright.features.drawing import ViewDrawer
from justright.features.workers import refuse_other_tools, tools
from justright.types import Array


class ViewTask(NamedTuple):
    """Images, their rows, and the numbers of the views to draw of each."""

    places: pa.Table
    rows: Sequence[int]
    numbers: Sequence[int]


@dataclass(frozen=True)
class ViewWork:
    """Draws views of a batch and, with a network on a CPU, computes what the bank stores of them.

    Another device computes in the calling process, by `stored_records`.
    """

    readers: Mapping[str, Reader]
    transform: Transform
    recipe: ImageRecipe
    seed: int
    layout: np.dtype[np.void]
    backbone: Backbone | None
    batch_size: int | None = None  # smaller batches are filled up to it, so that all have one shape
    tools: Mapping[str, str] | None = None  # what a worker has to compute with; None: with anything

    def __call__(self, task: ViewTask) -> list[Array]:
        """One array for each view: records of the bank, or pixels."""
        images = ImageSet(task.places, self.readers)
        drawer = ViewDrawer(images, self.transform, self.recipe, self.seed, rows=task.rows)
        # a batch holds one view of the same rows whatever else is missing: rounding cannot depend on a kill
        drawn = [views.numpy() for views in drawer.all_of_each(range(len(images)), task.numbers)]
        if self.backbone is None:
            return drawn
        if self.tools is not None:
            refuse_other_tools(tools(self.backbone.device, self.backbone.runtime), self.tools)
        return [stored_records(self.backbone, self.layout, views, self.batch_size) for views in drawn]


def stored_records(backbone: Backbone, layout: np.dtype[np.void], views: Array, batch_size: int | None = None) -> Array:
    """Drawn views as a bank stores them."""
    n = len(views)
    if batch_size is not None and n < batch_size:
        views = np.concatenate([views, np.zeros((batch_size - n, *views.shape[1:]), views.dtype)])
    stored = backbone.prefix(torch.from_numpy(views).to(backbone.device))
    return bank_records.packed(layout, backbone.stored_names, stored)[:n]
