"""Small pictures inside a page: many images as one sheet, within a budget; unreadable images are counted."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from jaxtyping import Int
from PIL import Image, ImageOps

from justright.data.image_set import ImageSet
from justright.report.elements import Missing, Picture
from justright.utils.context import track
from justright.utils.errors import JustrightError
from justright.utils.parallel import in_threads
from justright.utils.seeding import generator
from justright.utils.types import Array

GAP = 2
QUALITY = 55  # of WebP; a third of the size of a high-quality JPEG
EFFORT = 2  # of WebP, 0 to 6: half the time of the default 4 for a few percent more bytes
N_THREADS = 4  # decoding releases the GIL
N_SAMPLED, MARGIN = 40, 1.08  # sheets drawn to estimate the size of all of them, and the safety margin
SIDE = 96  # pixels of a small image, more than any sheet needs
MOST_CACHED = 2000  # small images cached in memory, about 50 MB

Sheet = tuple[Picture | None, list[str]]  # with the problems of images that could not be read


def data_uri(image: Image.Image) -> str:
    """Encode the image as a data URI."""
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=QUALITY, method=EFFORT)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"


class SmallImages:
    """The center square of each image of a set, at most `SIDE` pixels wide, cached.

    A page shows the same image on the first screen, in its cluster and on the map, and decoding is the slowest step.
    """

    def __init__(self, images: ImageSet):
        self.images = images
        self.image = lru_cache(MOST_CACHED)(self._image)

    def __len__(self) -> int:
        return len(self.images)

    def _image(self, row: int) -> Image.Image:
        image = self.images.image(row)
        side = min(SIDE, *image.size)
        return ImageOps.fit(image, (side, side))


@dataclass(frozen=True, eq=False)
class SheetOrder:
    """A request for one sheet."""

    rows: Int[Array, " rows"]  # of the set of images
    pixels: int  # per side of each image
    columns: int  # images per row
    alt: str  # alternative text


@dataclass
class PageImages:
    """Makes sheets of the images of a set until `budget` characters are used up."""

    images: ImageSet | SmallImages | Missing
    budget: int
    n_requested: int = field(default=0, init=False)  # images on all sheets
    n_left_out: int = field(default=0, init=False)  # sheets omitted because the budget was used up
    problems: list[str] = field(default_factory=list, init=False)  # one message per unreadable image

    def sheets(self, orders: Sequence[SheetOrder], what: str = "images") -> Iterator[Picture | None]:
        """One picture per order, in order; None if no image could be read or the budget is used up."""
        drawn = in_threads(self._draw, orders, N_THREADS)
        for order, (picture, problems) in track(zip(orders, drawn, strict=True), len(orders), what):
            if self.budget <= 0:
                self.n_left_out += bool(len(order.rows))
                yield None
                continue
            self.n_requested += len(order.rows)
            self.problems += problems
            self.budget -= _n_characters(picture)
            if self.budget < 0:  # this one does not fit
                self.n_left_out += 1
                picture = None
            yield picture

    def first_that_fits(self, plans: Sequence[Sequence[SheetOrder]], share: float = 1.0) -> Sequence[SheetOrder]:
        """The first of several plans for the same sheets that fits into this share of the budget, else the last plan.

        The size of a plan is estimated from a sample: photos need several times the bytes of drawings.
        """
        for orders in plans[:-1]:
            sample = generator(0, "sheets").permutation(len(orders))[:N_SAMPLED].tolist()
            sizes = [_n_characters(self._draw(orders[place])[0]) for place in sample]
            if not sizes or np.mean(sizes) * len(orders) * MARGIN <= share * self.budget:
                return orders
        return plans[-1]

    def sheet(self, order: SheetOrder) -> Picture | None:
        """A single sheet."""
        return next(self.sheets([order]))

    def _draw(self, order: SheetOrder) -> Sheet:
        """Draw a sheet; nothing once the budget is used up."""
        tiles: list[Image.Image] = []
        problems: list[str] = []
        if self.budget <= 0 or isinstance(self.images, Missing):
            return None, problems
        for row in order.rows.tolist():
            try:
                tiles.append(ImageOps.fit(self.images.image(row), (order.pixels, order.pixels)))
            except (JustrightError, OSError) as error:
                problems.append(str(error).splitlines()[0])
        if not tiles:
            return None, problems
        sheet = contact_sheet(tiles, min(order.columns, len(tiles)), GAP)
        return Picture(data_uri(sheet), sheet.width, sheet.height, order.alt), problems


def _n_characters(picture: Picture | None) -> int:
    """Size of the picture in the page, including about forty characters of markup."""
    return 0 if picture is None else len(picture.uri) + len(picture.alt) + 40


def contact_sheet(images: Sequence[Image.Image], columns: int, gap: int) -> Image.Image:
    """Put images of one size into rows of `columns`, left to right, on a transparent sheet."""
    width, height = images[0].size
    n_rows = -(-len(images) // columns)
    size = columns * (width + gap) - gap, n_rows * (height + gap) - gap
    sheet = Image.new("RGBA", size, (255, 255, 255, 0))
    for number, image in enumerate(images):
        row, column = divmod(number, columns)
        sheet.paste(image, (column * (width + gap), row * (height + gap)))
    return sheet
