"""Views of an image: weak (the recipe of GCD and its successors), strong (a DINO-like one), plain (no chance in it).

A view is a pure function of (seed, transform, image id, view number): no generator state, so the number of workers,
their order, a kill and a resume change nothing.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from justright.data.color_jitter import IDENTITY, TO_GRAY, ColorMap, jitter
from justright.data.pixels import AnyImage, Pixels, crop, normalize, resize, resize_shorter, to_pixels
from justright.data.recipe import ImageRecipe
from justright.utils.errors import DataError
from justright.utils.seeding import generator

VERSION = 1  # goes up when a view of the same seed would come out otherwise: older stored views are not reused
CROP_TRIES = 10

View = Float[Tensor, "3 size size"]
Colors = Float[Tensor, "3 height width"]
Span = tuple[float, float]  # from and to
Box = tuple[int, int, int, int]  # top, left, height, width


@dataclass(frozen=True)
class Weak:
    """Resize the shorter side, crop at random, flip: the training transform of GCD, XCon, SimGCD and LDS-GCD."""

    flip: float = 0.5

    def draw(self, pixels: Pixels, recipe: ImageRecipe, chance: np.random.Generator) -> View:
        """One view."""
        resized, size = resize_shorter(pixels, recipe.resize, recipe.interpolation), recipe.resolution
        top, left = (int(chance.integers(side - size + 1)) for side in resized.shape[1:])
        view = crop(resized, top, left, size, size)
        return normalize(view.flip(-1) if chance.random() < self.flip else view, recipe.mean, recipe.std)


@dataclass(frozen=True)
class Strong:
    """Crop and resize, flip, color jitter, grayscale, blur.

    muGCD's recipe is not published; this DINO-like set is a reconstruction (methods.md 1.4), every part an option.
    """

    scale: Span = (0.7, 1.0)  # of the crop: its share of the area
    ratio: Span = (3 / 4, 4 / 3)  # of the crop: width by height
    flip: float = 0.5  # how often it is done, as a share of the views; so are jitter, grayscale and blur
    jitter: float = 0.8
    brightness: float = 0.4  # how strong jitter is at most; so are contrast, saturation and hue
    contrast: float = 0.4
    saturation: float = 0.2
    hue: float = 0.1
    grayscale: float = 0.2
    blur: float = 0.5
    blur_sigma: Span = (0.1, 2.0)  # the width of the blur in pixels

    def draw(self, pixels: Pixels, recipe: ImageRecipe, chance: np.random.Generator) -> View:
        """One view."""
        size = recipe.resolution
        height, width = pixels.shape[1:]
        box = random_box(height, width, self.scale, self.ratio, chance)
        view = resize(crop(pixels, *box), size, size, recipe.interpolation)
        if chance.random() < self.flip:
            view = view.flip(-1)
        image = view.to(torch.float32, memory_format=torch.contiguous_format).div_(255.0)
        color = IDENTITY
        if chance.random() < self.jitter:
            strengths = np.array([self.brightness, self.contrast, self.saturation])
            brightness, contrast, saturation = chance.uniform(np.maximum(0.0, 1 - strengths), 1 + strengths).tolist()
            hue, order = chance.uniform(-self.hue, self.hue), chance.permutation(4)
            mean = image.mean(dim=(1, 2)).double().numpy()
            color = jitter(mean, brightness, contrast, saturation, hue, order.tolist())
        if chance.random() < self.grayscale:
            color = color.then(TO_GRAY)
        if color is not IDENTITY:
            image = recolored(image, color)
        if chance.random() < self.blur:
            image = gaussian_blur(image, float(chance.uniform(*self.blur_sigma)))
        return normalize(image.mul_(255.0), recipe.mean, recipe.std)


@dataclass(frozen=True)
class Plain:
    """The test transform: every view of an image is the same."""

    def draw(self, pixels: Pixels, recipe: ImageRecipe, chance: np.random.Generator) -> View:
        """The one view."""
        return recipe.preprocess(pixels)


Transform = Weak | Strong | Plain

TRANSFORMS: dict[str, Transform] = {"weak": Weak(), "strong": Strong(), "plain": Plain()}


def transform_named(transform: str | Transform) -> Transform:
    """A transform, by its name or as it is."""
    if not isinstance(transform, str):
        return transform
    if transform not in TRANSFORMS:
        raise DataError(f"no transform is called {transform!r}", expected=" or ".join(TRANSFORMS))
    return TRANSFORMS[transform]


def describe(transform: Transform) -> dict[str, Any]:
    """What a view depends on besides image, recipe and seed, as plain values."""
    return {"kind": type(transform).__name__, "version": VERSION, **asdict(transform)}


def draw_view(
    image: AnyImage, transform: Transform, recipe: ImageRecipe, *, seed: int, image_id: str, view: int
) -> View:
    """View number `view` of an image, normalized: always the same one for the same arguments."""
    chance = generator(seed, "view", type(transform).__name__, image_id, view)
    return transform.draw(to_pixels(image), recipe, chance)


def random_box(height: int, width: int, scale: Span, ratio: Span, chance: np.random.Generator) -> Box:
    """A random crop: area uniform, ratio uniform in its logarithm.

    A box that does not fit is drawn anew; after ten of them the largest middle box within `ratio` is taken.
    """
    for _ in range(CROP_TRIES):
        area = height * width * chance.uniform(*scale)
        shape = math.exp(chance.uniform(math.log(ratio[0]), math.log(ratio[1])))
        box_height, box_width = round(math.sqrt(area / shape)), round(math.sqrt(area * shape))
        if 0 < box_height <= height and 0 < box_width <= width:
            top, left = chance.integers(height - box_height + 1), chance.integers(width - box_width + 1)
            return int(top), int(left), box_height, box_width
    box_height = min(height, max(1, round(width / ratio[0])))
    box_width = min(width, max(1, round(height * ratio[1])))
    return (height - box_height) // 2, (width - box_width) // 2, box_height, box_width


def recolored(image: Colors, color: ColorMap) -> Colors:
    """Every pixel mapped, then clamped to [0, 1]."""
    matrix, shift = torch.from_numpy(color.matrix).to(image.dtype), torch.from_numpy(color.shift).to(image.dtype)
    return torch.addmm(shift[:, None], matrix, image.flatten(1)).clamp_(0.0, 1.0).view_as(image)


def gaussian_blur(image: Colors, sigma: float) -> Colors:
    """Blur with a Gaussian cut at three sigma, mirrored at the border.

    Shifted copies are added up, one axis after the other: the sum runs in one order on any number of threads.
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
