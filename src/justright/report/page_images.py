"""Small pictures inside a page: many images as one sheet, within a budget, with a count of what could not be read."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

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
QUALITY = 55  # of WebP: a face is still a face, in a third of the bytes of a fine JPEG
EFFORT = 2  # of WebP, from 0 to 6: takes half the time of 4, the usual one, for a few percent more bytes
N_THREADS = 4  # decoding releases the interpreter's lock
N_SAMPLED, MARGIN = 40, 1.08  # sheets that tell what all of them cost, and how far that may be off
SIDE = 96  # pixels of a small image: more than any sheet shows, so that sheets can be made smaller from it
MOST_KEPT = 2000  # small images that are kept in memory, in some 50 MB

Sheet = tuple[Picture | None, list[str]]  # and why images are missing in it


def data_uri(image: Image.Image, kind: str = "WEBP", quality: int = QUALITY) -> str:
    """The image as text that a page can hold."""
    buffer = io.BytesIO()
    image.save(buffer, kind, quality=quality, method=EFFORT)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"


class SmallImages:
    """Gives the middle square of each image of a set, at most `SIDE` pixels wide, and keeps those it gave last.

    A page shows the same image among those of its cluster, on its first screen and on its map; to decode a photo takes
    longer than all that is done with it afterwards.
    """

    def __init__(self, images: ImageSet):
        self.images = images
        self.image = lru_cache(MOST_KEPT)(self._image)

    def __len__(self) -> int:
        """How many images the set has."""
        return len(self.images)

    def _image(self, row: int) -> Image.Image:
        image = self.images.image(row)
        side = min(SIDE, *image.size)
        return ImageOps.fit(image, (side, side))


@dataclass(frozen=True, eq=False)
class SheetOrder:
    """One sheet that is asked for."""

    rows: Int[Array, " rows"]  # of the set of images
    pixels: int  # a side of each image
    columns: int  # images beside each other
    alt: str  # what the sheet shows, in words


@dataclass
class PageImages:
    """Makes sheets of the images of a set until `budget` characters are spent; from then on it gives none."""

    images: ImageSet | SmallImages | Missing
    budget: int
    n_asked: int = field(default=0, init=False)
    n_left_out: int = field(default=0, init=False)  # sheets that are missing because the budget was spent
    problems: list[str] = field(default_factory=list, init=False)  # why images of the n_asked could not be read
    _sampled: dict[SheetOrder, Sheet] = field(default_factory=dict, init=False)  # of the richest plan: not drawn twice

    def sheets(self, orders: Sequence[SheetOrder], what: str = "images") -> Iterator[Picture | None]:
        """One picture an order, in order; None where no image could be read or the budget is spent."""
        # a sheet that was drawn to tell what it costs is not drawn again
        found = in_threads(lambda order: self._sampled.pop(order, None) or self._draw(order), orders, N_THREADS)
        for order, (picture, problems) in track(zip(orders, found, strict=True), len(orders), what):
            if self.budget <= 0:
                self.n_left_out += bool(len(order.rows))
                yield None
                continue
            self.n_asked += len(order.rows)
            self.problems += problems
            self.budget -= _n_characters(picture)
            if self.budget < 0:  # this one is one too many
                self.n_left_out += 1
                picture = None
            yield picture

    def richest(self, plans: Sequence[Sequence[SheetOrder]], share: float = 1.0) -> Sequence[SheetOrder]:
        """The first of several plans for the same sheets that this share of the budget pays for; the last if none.

        What a plan costs is told from a sample: photos need several times the bytes of drawings.
        """
        for orders in plans[:-1]:
            sample = generator(0, "sheets").permutation(len(orders))[:N_SAMPLED].tolist()
            drawn = {orders[place]: self._draw(orders[place]) for place in sample}
            cost = np.mean([_n_characters(picture) for picture, _ in drawn.values()]) if drawn else 0.0
            if cost * len(orders) * MARGIN <= share * self.budget:
                self._sampled |= drawn
                return orders
        return plans[-1]

    def sheet(self, order: SheetOrder) -> Picture | None:
        """A single sheet."""
        return next(self.sheets([order]))

    def _draw(self, order: SheetOrder) -> Sheet:
        """Nothing is drawn once the budget is spent."""
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
        columns = min(order.columns, len(tiles))
        sheet = contact_sheet(tiles, columns, GAP)
        sheet.putalpha(_opaque(len(tiles), order.pixels, columns))
        return Picture(data_uri(sheet), sheet.width, sheet.height, order.alt), problems


@cache
def _opaque(n_tiles: int, pixels: int, columns: int) -> Image.Image:
    """White where a sheet has images: the paper of the page shows between them, whatever its color."""
    black = contact_sheet([Image.new("RGB", (pixels, pixels))] * n_tiles, columns, GAP)
    return ImageOps.invert(black.convert("L"))


def _n_characters(picture: Picture | None) -> int:
    """What the picture takes of the page, with the forty letters around it."""
    return 0 if picture is None else len(picture.uri) + len(picture.alt) + 40


def contact_sheet(images: Sequence[Image.Image], columns: int, gap: int) -> Image.Image:
    """Put images of one size into rows of `columns`, left to right, on white."""
    width, height = images[0].size
    n_rows = -(-len(images) // columns)
    sheet = Image.new("RGB", (columns * (width + gap) - gap, n_rows * (height + gap) - gap), "white")
    for number, image in enumerate(images):
        row, column = divmod(number, columns)
        sheet.paste(image, (column * (width + gap), row * (height + gap)))
    return sheet
