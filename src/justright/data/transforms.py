"""Transforms: resize and normalize, the test transform of a backbone, and random views for training.

Resizing: torch resizes uint8 in integer arithmetic, so the result is bit-identical on any processor and for any number
of threads, and at most two gray levels from Pillow's bicubic, which takes two to six times as long.

Color jitter: brightness, contrast, saturation and grayscale are affine in the colors, and contrast needs only the mean
gray, which an affine map carries along. Hue is a rotation about the gray axis (in YIQ) instead of a shift in HSV. So
all changes are one affine map of RGB, applied and clamped once. See docs/research/decisions.md.

Views: weak (as in GCD and its successors), strong (DINO-like), plain (the test transform). A view is a pure function of
(seed, transform, image id, view number), so workers, their order and a resume change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor
from torch.nn.functional import interpolate, pad

from justright.utils.errors import DataError
from justright.utils.seeding import generator
from justright.utils.types import Array

Pixels = UInt8[Tensor, "3 _height _width"]  # of any size: axes that start with an underscore are not compared
AnyImage = Image.Image | UInt8[Array, "_height _width 3"] | Pixels


def to_pixels(image: AnyImage) -> Pixels:
    """The image as a tensor, channels first in shape and last in memory, where resizing is fastest."""
    if isinstance(image, Tensor):
        return image
    if isinstance(image, Image.Image) and image.mode != "RGB":
        raise DataError(f"an image of mode {image.mode}", expected="RGB", advice="image.convert('RGB')")
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)  # a copy: torch needs writable memory


def resize(pixels: Pixels, height: int, width: int, interpolation: str = "bicubic") -> Pixels:
    """Resize with antialiasing."""
    if tuple(pixels.shape[1:]) == (height, width):
        return pixels
    return interpolate(pixels[None], size=(height, width), mode=interpolation, antialias=True)[0]


def resize_shorter(pixels: Pixels, size: int, interpolation: str = "bicubic") -> Pixels:
    """Resize the shorter side to `size` and keep the ratio; the longer side is rounded down."""
    height, width = pixels.shape[1:]
    if height <= width:
        return resize(pixels, size, max(size, size * width // height), interpolation)
    return resize(pixels, max(size, size * height // width), size, interpolation)


def center_crop(pixels: Pixels, size: int) -> Pixels:
    """The middle square; half pixels are rounded to even, as in the public recipes."""
    height, width = pixels.shape[1:]
    return crop(pixels, round((height - size) / 2), round((width - size) / 2), size, size)


def crop(pixels: Pixels, top: int, left: int, height: int, width: int) -> Pixels:
    """A rectangle of the image."""
    return pixels[:, top : top + height, left : left + width]


def normalize(
    pixels: Float[Tensor, "3 height width"] | Pixels, mean: Sequence[float], std: Sequence[float]
) -> Float[Tensor, "3 height width"]:
    """(x / 255 - mean) / std per channel, as float32."""
    shift, scale = torch.tensor(mean).view(3, 1, 1), torch.tensor(std).view(3, 1, 1)
    return pixels.to(torch.float32, memory_format=torch.contiguous_format).div_(255.0).sub_(shift).div_(scale)


Color = tuple[float, float, float]

IMAGENET_MEAN: Color = (0.485, 0.456, 0.406)
IMAGENET_STD: Color = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class ImageRecipe:
    """The test transform of a backbone: resize the shorter side, crop the middle, normalize.

    The defaults are those of the field's public code: 256, then 224, ImageNet colors.
    """

    resolution: int = 224  # side of the input of the backbone in pixels
    resize: int = 256  # the shorter side before the crop
    mean: Color = IMAGENET_MEAN  # of colors on [0, 1], and so is std
    std: Color = IMAGENET_STD
    interpolation: str = "bicubic"  # or "bilinear", both antialiased

    @property
    def crop(self) -> float:
        """The share of a side of the resized image that the crop keeps."""
        return self.resolution / self.resize

    def preprocess(self, image: AnyImage) -> Float[Tensor, "3 resolution resolution"]:
        """The test view of an image, the same on every machine."""
        resized = resize_shorter(to_pixels(image), self.resize, self.interpolation)
        return normalize(center_crop(resized, self.resolution), self.mean, self.std)

    def at(self, resolution: int) -> ImageRecipe:
        """The same recipe for another resolution, with the same share of the crop."""
        return replace(self, resolution=resolution, resize=int(resolution / self.crop))


GRAY = np.array([0.299, 0.587, 0.114])  # luma of ITU-R 601, as in Pillow
TO_YIQ = np.array([GRAY, [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])
FROM_YIQ = np.linalg.inv(TO_YIQ)
TO_GRAY = np.tile(GRAY, (3, 1))


@dataclass(frozen=True)
class ColorMap:
    """x -> matrix x + shift, for colors on [0, 1]."""

    matrix: Float[Array, "3 3"]
    shift: Float[Array, "3"]

    def then(self, matrix: Float[Array, "3 3"], shift: float = 0.0) -> ColorMap:
        """This map followed by another one."""
        return ColorMap(matrix @ self.matrix, matrix @ self.shift + shift)


IDENTITY = ColorMap(np.eye(3), np.zeros(3))


def jitter(
    mean: Float[Array, "3"], brightness: float, contrast: float, saturation: float, hue: float, order: list[int]
) -> ColorMap:
    """Four changes in the given order (0 brightness, 1 contrast, 2 saturation, 3 hue).

    `mean` is the image's mean color. Brightness, contrast and saturation are factors, hue is a share of the circle.
    """
    color = IDENTITY
    for step in order:
        if step == 0:
            color = color.then(brightness * np.eye(3))
        elif step == 1:  # towards or away from the current mean gray of the image
            gray = float(GRAY @ (color.matrix @ mean + color.shift))
            color = color.then(contrast * np.eye(3), (1 - contrast) * gray)
        elif step == 2:
            color = color.then(saturation * np.eye(3) + (1 - saturation) * TO_GRAY)
        else:
            cos, sin = np.cos(2 * np.pi * hue), np.sin(2 * np.pi * hue)
            color = color.then(FROM_YIQ @ np.array([[1, 0, 0], [0, cos, -sin], [0, sin, cos]]) @ TO_YIQ)
    return color


VERSION = 1  # raised when views of the same seed change: stored views of another version are not used
CROP_TRIES = 10

View = Float[Tensor, "3 size size"]
Colors = Float[Tensor, "3 height width"]
Span = tuple[float, float]  # lowest and highest value
Box = tuple[int, int, int, int]  # top, left, height, width


@dataclass(frozen=True)
class Weak:
    """Resize the shorter side, crop at random, flip: the training transform of GCD, XCon, SimGCD and LDS-GCD."""

    flip: float = 0.5

    def draw(self, pixels: Pixels, recipe: ImageRecipe, rng: np.random.Generator) -> View:
        """Draw a random view."""
        resized, size = resize_shorter(pixels, recipe.resize, recipe.interpolation), recipe.resolution
        top, left = (int(rng.integers(side - size + 1)) for side in resized.shape[1:])
        view = crop(resized, top, left, size, size)
        if rng.random() < self.flip:
            view = view.flip(-1)
        return normalize(view, recipe.mean, recipe.std)


@dataclass(frozen=True)
class Strong:
    """Crop and resize, flip, color jitter, grayscale, blur.

    muGCD's recipe is not published; this DINO-like set is a reconstruction (methods.md 1.4).
    """

    scale: Span = (0.7, 1.0)  # of the crop: its share of the area
    ratio: Span = (3 / 4, 4 / 3)  # of the crop: width by height
    flip: float = 0.5  # probability, as are jitter, grayscale and blur
    jitter: float = 0.8
    brightness: float = 0.4  # largest strength of the jitter, as are contrast, saturation and hue
    contrast: float = 0.4
    saturation: float = 0.2
    hue: float = 0.1
    grayscale: float = 0.2
    blur: float = 0.5
    blur_sigma: Span = (0.1, 2.0)  # the width of the blur in pixels

    def draw(self, pixels: Pixels, recipe: ImageRecipe, rng: np.random.Generator) -> View:
        """Draw a random view."""
        size = recipe.resolution
        height, width = pixels.shape[1:]
        box = random_box(height, width, self.scale, self.ratio, rng)
        view = resize(crop(pixels, *box), size, size, recipe.interpolation)
        if rng.random() < self.flip:
            view = view.flip(-1)
        image = view.to(torch.float32, memory_format=torch.contiguous_format).div_(255.0)
        color = IDENTITY
        if rng.random() < self.jitter:
            strengths = np.array([self.brightness, self.contrast, self.saturation])
            brightness, contrast, saturation = rng.uniform(np.maximum(0.0, 1 - strengths), 1 + strengths).tolist()
            hue, order = rng.uniform(-self.hue, self.hue), rng.permutation(4)
            mean = image.mean(dim=(1, 2)).double().numpy()
            color = jitter(mean, brightness, contrast, saturation, hue, order.tolist())
        if rng.random() < self.grayscale:
            color = color.then(TO_GRAY)
        if color is not IDENTITY:
            image = recolored(image, color)
        if rng.random() < self.blur:
            image = gaussian_blur(image, float(rng.uniform(*self.blur_sigma)))
        return normalize(image.mul_(255.0), recipe.mean, recipe.std)


@dataclass(frozen=True)
class Plain:
    """The test transform: all views of an image are equal."""

    def draw(self, pixels: Pixels, recipe: ImageRecipe, rng: np.random.Generator) -> View:
        """Return the test view."""
        return recipe.preprocess(pixels)


Transform = Weak | Strong | Plain

TRANSFORMS: dict[str, Transform] = {"weak": Weak(), "strong": Strong(), "plain": Plain()}


def transform_named(transform: str | Transform) -> Transform:
    """Look up a transform by name; return any other value unchanged."""
    if not isinstance(transform, str):
        return transform
    if transform not in TRANSFORMS:
        raise DataError(f"no transform is called {transform!r}", expected=" or ".join(TRANSFORMS))
    return TRANSFORMS[transform]


def describe(transform: Transform) -> dict[str, Any]:
    """The settings of a transform as plain values."""
    return {"kind": type(transform).__name__, "version": VERSION, **asdict(transform)}


def draw_view(
    image: AnyImage, transform: Transform, recipe: ImageRecipe, *, seed: int, image_id: str, view: int
) -> View:
    """View number `view` of an image, normalized; equal arguments give equal views."""
    rng = generator(seed, "view", type(transform).__name__, image_id, view)
    return transform.draw(to_pixels(image), recipe, rng)


def random_box(height: int, width: int, scale: Span, ratio: Span, rng: np.random.Generator) -> Box:
    """A random crop: area uniform, ratio log-uniform.

    A box that does not fit is drawn again; after ten tries the largest centered box within `ratio` is returned.
    """
    for _ in range(CROP_TRIES):
        area = height * width * rng.uniform(*scale)
        shape = math.exp(rng.uniform(math.log(ratio[0]), math.log(ratio[1])))
        box_height, box_width = round(math.sqrt(area / shape)), round(math.sqrt(area * shape))
        if 0 < box_height <= height and 0 < box_width <= width:
            top, left = rng.integers(height - box_height + 1), rng.integers(width - box_width + 1)
            return int(top), int(left), box_height, box_width
    box_height = min(height, max(1, round(width / ratio[0])))
    box_width = min(width, max(1, round(height * ratio[1])))
    return (height - box_height) // 2, (width - box_width) // 2, box_height, box_width


def recolored(image: Colors, color: ColorMap) -> Colors:
    """Map every pixel, then clamp to [0, 1]."""
    matrix, shift = torch.from_numpy(color.matrix).to(image.dtype), torch.from_numpy(color.shift).to(image.dtype)
    return torch.addmm(shift[:, None], matrix, image.flatten(1)).clamp_(0.0, 1.0).view_as(image)


def gaussian_blur(image: Colors, sigma: float) -> Colors:
    """Blur with a Gaussian cut at three sigma, mirrored at the border.

    Shifted copies are added, one axis after the other, so that the order of the sum does not depend on threads.
    """
    radius = min(math.ceil(3 * sigma), min(image.shape[1:]) - 1)
    weights = [math.exp(-0.5 * (offset / sigma) ** 2) for offset in range(radius + 1)]
    total = weights[0] + 2 * sum(weights[1:])
    for axis in (1, 2):
        border = (0, 0, radius, radius) if axis == 1 else (radius, radius, 0, 0)
        size, padded = image.shape[axis], pad(image[None], border, mode="reflect")[0]
        image = padded.narrow(axis, radius, size) * (weights[0] / total)
        for offset in range(1, radius + 1):
            image.add_(padded.narrow(axis, radius - offset, size), alpha=weights[offset] / total)
            image.add_(padded.narrow(axis, radius + offset, size), alpha=weights[offset] / total)
    return image
