"""Images as uint8 tensors, and the two things done to all of them: resize and normalize.

torch resizes uint8 in integer arithmetic, so the result is the same bits on any processor and for any number of
threads, and at most two gray levels away from Pillow's bicubic, which costs two to six times as much.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor
from torch.nn.functional import interpolate

from justright.utils.errors import DataError
from justright.utils.types import Array

Pixels = UInt8[Tensor, "3 _height _width"]  # any size; those that an underscore begins are not compared
AnyImage = Image.Image | UInt8[Array, "_height _width 3"] | Pixels


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
