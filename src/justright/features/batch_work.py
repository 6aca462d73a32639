"""What a worker of an extraction does, in a thread, in another process or on another machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import torch
from jaxtyping import Float

from justright.data.image_set import ImageSet
from justright.data.readers import Reader
from justright.data.recipe import ImageRecipe
from justright.errors import JustrightError
from justright.features.bad_rows import Reasons, reason_at
from justright.features.feature_network import FeatureNetwork
from justright.types import Array


@dataclass(frozen=True)
class BatchWork:
    """Decodes a batch and, with a network, computes its features.

    Without one the calling process computes: a network on another device than a CPU stays there.
    """

    readers: Mapping[str, Reader]
    recipe: ImageRecipe
    batch_size: int
    network: FeatureNetwork | None
    tools: Mapping[str, str]

    @classmethod
    def of(cls, network: FeatureNetwork, images: ImageSet) -> BatchWork:
        """The work on these images."""
        own = network if network.device.type == "cpu" else None
        return cls(images.readers, network.backbone.recipe, network.batch_size, own, network.tools())

    def __call__(self, places: pa.Table) -> tuple[Float[Array, " batch *axes"], Reasons]:
        """Features or pixels of a batch, and why images of it are bad, by their place in it."""
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
            return batch.numpy(), bad
        if (here := self.network.tools()) != self.tools:  # a cluster may be made of different machines
            raise JustrightError(
                f"a worker computes with {here}",
                expected=f"{self.tools}, as where the extraction was begun, or features would differ by rounding",
                advice="machines of one kind with the same packages",
            )
        return self.network(batch), bad
