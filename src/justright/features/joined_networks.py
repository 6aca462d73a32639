"""Several networks side by side as one: their features, joined, are those of a single larger network.

Networks that were trained in different ways err in different ways, so both together tell more images apart than either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import interpolate, normalize

from justright.data.recipe import ImageRecipe
from justright.features.cuts import Cut, Stored, cut, uncut_features
from justright.features.guarded_timm import Network

JOIN = "+"  # between the names of the networks

Images = Float[Tensor, "batch 3 height width"]
Rendered = Float[Tensor, "batch 3 own_height own_width"]


def joined(features: Sequence[Float[Tensor, "batch _"]]) -> Float[Tensor, "batch dim"]:
    """Each feature at one length, side by side: all networks count alike, and a number is about 1, as after a norm."""
    length = math.sqrt(sum(part.shape[-1] for part in features) / len(features))
    return length * torch.cat([normalize(part, dim=-1) for part in features], dim=-1)


class JoinedNetworks(nn.Module):
    """Networks that see the same image, or the same view of it, each at its own size and in its own colors.

    Images come by `recipe`, that of the network with the highest resolution; the others see them made smaller.
    """

    def __init__(self, networks: Sequence[Network], recipes: Sequence[ImageRecipe]):
        super().__init__()
        self.networks, self.recipes = nn.ModuleList(networks), tuple(recipes)
        self.recipe = max(recipes, key=lambda recipe: recipe.resolution)

    def rendered(self, images: Images) -> list[Rendered]:
        """The images as each of the networks wants them."""
        return [self._rendered(images, own) for own in self.recipes]

    def _rendered(self, images: Images, own: ImageRecipe) -> Rendered:
        if own.resolution != self.recipe.resolution:
            images = interpolate(images, size=(own.resolution,) * 2, mode=own.interpolation, antialias=True)
        colors = (self.recipe.mean, self.recipe.std, own.mean, own.std)
        if colors[:2] == colors[2:]:
            return images
        mean, std, own_mean, own_std = (images.new_tensor(each).view(3, 1, 1) for each in colors)
        return (images * std + mean - own_mean) / own_std

    def forward_features(self, images: Images) -> Float[Tensor, "batch dim"]:
        """The joined feature: what timm's networks do after `forward_features` is done for each of them."""
        parts = zip(self.networks, self.rendered(images), strict=True)
        return joined([uncut_features(network, seen) for network, seen in parts])

    def forward_head(self, features: Float[Tensor, "batch dim"], pre_logits: bool = True) -> Float[Tensor, "batch dim"]:
        """Nothing is left to do."""
        return features


class JoinedCut(Cut):
    """Every network cut for itself: a view stores what each of them stores, and the last part of each is tuned."""

    def __init__(self, model: JoinedNetworks, images: Images):
        super().__init__(model)
        self.cuts = [cut(*each) for each in zip(model.networks, model.rendered(images), strict=True)]
        self.names = tuple(f"{number}.{name}" for number, each in enumerate(self.cuts) for name in each.names)
        self.tuned = tuple(f"networks.{number}.{path}" for number, each in enumerate(self.cuts) for path in each.tuned)
        self.ends_in_norm = all(each.ends_in_norm for each in self.cuts)
        self.is_staged = all(each.is_staged for each in self.cuts)

    def prefix(self, images: Images) -> Stored:
        """What all frozen parts give, one network after the other."""
        seen = zip(self.cuts, self.model.rendered(images), strict=True)
        return tuple(part for each, own in seen for part in each.prefix(own))

    def suffix(self, stored: Stored) -> Float[Tensor, "batch dim"]:
        """The joined feature."""
        left = iter(stored)
        return joined([each.suffix(tuple(islice(left, len(each.names)))) for each in self.cuts])
