"""How a backbone wants its images: resolution, resize, colors. The test transform, without chance, and its steps.

Images are uint8 tensors here. torch resizes uint8 in integer arithmetic, so the result is the same bits on any
processor and for any number of threads, and at most two gray levels away from Pillow's bicubic, which costs two to six
times as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor
from torch.nn.functional import interpolate

from justright.errors import DataError
from justright.types import Array

Pixels = UInt8[Tensor, "3 _height _width"]  # any size; those that an underscore begins are not compared
AnyImage = Image.Image | UInt8[Array, "_height _width 3"] | Pixels
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


def to_pixels(image: AnyImage) -> Pixels:
    """The image as a tensor, colors first in shape and last in memory, where resizing is fastest."""
    if isinstance(image, Tensor):
        return image
    if isinstance(image, Image.Image):
        if image.mode != "RGB":
            raise DataError(f"an image of mode {image.mode}", expected="RGB", advice="image.convert('RGB')")
        image = np.array(image)  # a copy: torch wants memory it may write to
    return torch.from_numpy(image).permute(2, 0, 1)


def resize(pixels: Pixels, height: int, width: int, interpolation: str = "bicubic") -> Pixels:
    """Resize with antialiasing."""
    if tuple(pixels.shape[1:]) == (height, width):
        return pixels
    return interpolate(pixels[None], size=(height, width), mode=interpolation, antialias=True)[0]


def resize_shorter(pixels: Pixels, size: int, interpolation: str = "bicubic") -> Pixels:
    """Resize so that the shorter side is `size` and the ratio is kept, the longer side rounded down."""
    height, width = pixels.shape[1:]
    if height <= width:
        return resize(pixels, size, max(size, size * width // height), interpolation)
    return resize(pixels, max(size, size * height // width), size, interpolation)


def center_crop(pixels: Pixels, size: int) -> Pixels:
    """The middle square; a half pixel goes to the even side, as in the public recipes."""
    height, width = pixels.shape[1:]
    return crop(pixels, round((height - size) / 2), round((width - size) / 2), size, size)


def crop(pixels: Pixels, top: int, left: int, height: int, width: int) -> Pixels:
    """A rectangle of the image."""
    return pixels[:, top : top + height, left : left + width]


def normalize(
    pixels: Float[Tensor, "3 height width"] | Pixels, mean: Sequence[float], std: Sequence[float]
) -> Float[Tensor, "3 height width"]:
    """(x / 255 - mean) / std per color, as float32."""
    shift, scale = torch.tensor(mean).view(3, 1, 1), torch.tensor(std).view(3, 1, 1)
    return pixels.to(torch.float32, memory_format=torch.contiguous_format).div_(255.0).sub_(shift).div_(scale)
