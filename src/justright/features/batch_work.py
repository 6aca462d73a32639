"""What a worker of an extraction does, in a thread, in another process or on another machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from justright.data.image_set import ImageSet
from justright.data.readers import Reader
from justright.data.transforms import ImageRecipe
from justright.features.bad_rows import Reasons, reason_at
from justright.features.feature_network import FeatureNetwork
from justright.features.views import pack
from justright.features.workers import refuse_other_tools
from justright.utils.types import Array


class WorkedBatch(NamedTuple):
    """What came of a batch of images."""

    numbers: Array  # features, or pixels where the calling process computes
    bad: Reasons  # why images of it are bad, by their place in it
    records: Array | None  # their plain views as a bank stores them, where those are wanted and there


@dataclass(frozen=True)
class BatchWork:
    """Decodes a batch and, with a network, computes its features and with `layout` also records of a bank.

    Without one the calling process computes: a network on another device than a CPU stays there.
    """

    readers: Mapping[str, Reader]
    recipe: ImageRecipe
    batch_size: int
    network: FeatureNetwork | None
    tools: Mapping[str, str]
    layout: np.dtype[np.void] | None = None

    def __call__(self, places: pa.Table) -> WorkedBatch:
        """Decode a batch, and compute."""
        images, bad = ImageSet(places, self.readers), {}
        side = self.recipe.resolution
        batch = torch.zeros(self.batch_size if len(images) else 0, 3, side, side)
        for slot in range(len(images)):
            try:
                batch[slot] = self.recipe.preprocess(images.image(slot))
            except Exception as error:
                # decoders fail on damaged files in more ways than anyone has listed; the reason carries the error
                bad[slot] = reason_at(error, images, slot)
        if self.network is None:
            return WorkedBatch(batch.numpy(), bad, None)
        refuse_other_tools(self.network.tools(), self.tools)
        return computed(self.network, batch, self.layout, bad)


def computed(network: FeatureNetwork, batch: Tensor, layout: np.dtype[np.void] | None, bad: Reasons) -> WorkedBatch:
    """Features of a decoded batch, with `layout` also its plain views."""
    if layout is None or not len(batch):
        return WorkedBatch(network(batch), bad, None)
    features, stored = network.with_views(batch)
    return WorkedBatch(features, bad, pack(layout, network.backbone.stored_names, stored))
