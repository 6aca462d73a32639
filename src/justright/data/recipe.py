"""How a backbone wants its images: resolution, resize, colors. The test transform, without chance."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from jaxtyping import Float
from torch import Tensor

from justright.data.pixels import AnyImage, center_crop, normalize, resize_shorter, to_pixels

Color = tuple[float, float, float]

IMAGENET_MEAN: Color = (0.485, 0.456, 0.406)
IMAGENET_STD: Color = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class ImageRecipe:
    """The test transform of a backbone: resize the shorter side, crop the middle, normalize.

    The defaults are those of the field's public code: 256, then 224, ImageNet colors.
    """

    resolution: int = 224  # pixels a side that the backbone sees
    resize: int = 256  # the shorter side before the crop
    mean: Color = IMAGENET_MEAN  # of colors on [0, 1], and so is std
    std: Color = IMAGENET_STD
    interpolation: str = "bicubic"  # or "bilinear", both antialiased

    @property
    def crop(self) -> float:
        """The share of the resized image that the crop keeps, one way."""
        return self.resolution / self.resize

    def preprocess(self, image: AnyImage) -> Float[Tensor, "3 resolution resolution"]:
        """The one test view of an image; the same numbers on every machine."""
        resized = resize_shorter(to_pixels(image), self.resize, self.interpolation)
        return normalize(center_crop(resized, self.resolution), self.mean, self.std)

    def at(self, resolution: int) -> ImageRecipe:
        """The same recipe for another resolution, the crop's share kept."""
        return replace(self, resolution=resolution, resize=int(resolution / self.crop))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for fingerprints and for files."""
        return asdict(self)
