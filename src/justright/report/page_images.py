"""Small pictures inside a page: many images as one sheet, a budget in bytes, and a count of what could not be read."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int
from PIL import Image, ImageOps

from justright.data.contact_sheet import contact_sheet
from justright.data.image_set import ImageSet
from justright.errors import BadImageError, JustrightError
from justright.progress import Track, silent
from justright.report.names import Markup, text
from justright.report.reading import Missing
from justright.seeding import generator
from justright.types import Array

GAP = 2
QUALITY = 55
"""Of WebP: a face is still a face, in a third of the bytes of a fine JPEG."""

N_THREADS = 4
"""Decoding releases the interpreter's lock."""

N_SAMPLED, MARGIN = 40, 1.08
"""Sheets that tell what all of them cost, and how far that may be off."""


def data_uri(image: Image.Image, kind: str = "WEBP", quality: int = QUALITY) -> str:
    """The image as text that an `<img>` takes."""
    buffer = io.BytesIO()
    image.save(buffer, kind, quality=quality)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def square(image: Image.Image, pixels: int) -> Image.Image:
    """The middle of the image, `pixels` a side."""
    return ImageOps.fit(image, (pixels, pixels))


@dataclass(frozen=True)
class SheetOrder:
    """One sheet that is asked for: rows of the set, pixels a side of each, images beside each other, and what it is."""

    rows: Int[Array, " rows"]
    pixels: int
    columns: int
    alt: str


@dataclass
class PageImages:
    """Makes sheets of the images of a set until `budget` characters are spent; from then on it gives empty ones.

    Attributes: n_unreadable of n_asked images could not be read, for the `reason` of the first; n_unpaid sheets were
    left out because the budget was spent.
    """

    images: ImageSet | Missing
    budget: int
    n_asked: int = field(default=0, init=False)
    n_unreadable: int = field(default=0, init=False)
    n_unpaid: int = field(default=0, init=False)
    reason: str = field(default="", init=False)

    def sheets(self, orders: Sequence[SheetOrder], track: Track = silent, what: str = "images") -> Iterator[Markup]:
        """One `<img>` an order, in order; empty where no image could be read or the budget is spent."""
        if isinstance(self.images, Missing):
            self.reason = self.images.reason
            yield from (Markup("") for _ in orders)
            return
        with ThreadPoolExecutor(N_THREADS) as threads:
            found = threads.map(self._sheet, orders)
            for order, (uri, bad) in track(zip(orders, found, strict=True), len(orders), what):
                yield self._paid(order, uri, bad)

    def richest(self, plans: Sequence[Sequence[SheetOrder]], share: float = 1.0) -> Sequence[SheetOrder]:
        """The first of several plans for the same sheets that this share of the budget pays for; the last if none.

        What a plan costs is told from a sample: photos need several times the bytes of drawings.
        """
        for orders in plans[:-1]:
            sample = generator(0, "sheets").permutation(len(orders))[:N_SAMPLED].tolist()
            cost = np.mean([len(self._sheet(orders[place])[0]) for place in sample]) if sample else 0.0
            if cost * len(orders) * MARGIN <= share * self.budget:
                return orders
        return plans[-1]

    def sheet(self, order: SheetOrder) -> Markup:
        """A single sheet."""
        return next(self.sheets([order]))

    def remarks(self) -> list[str]:
        """What is missing, in sentences."""
        said = []
        if isinstance(self.images, Missing):
            said.append(f"No images to show: {self.images.reason}.")
        elif self.n_unreadable:
            said.append(
                f"{self.n_unreadable:,} of {self.n_asked:,} images could not be read any more, e.g. {self.reason}."
            )
        if self.n_unpaid:
            said.append(f"{self.n_unpaid:,} sheets of images were left out to keep this page small.")
        return said

    def _sheet(self, order: SheetOrder) -> tuple[str, list[str]]:
        """The picture, and why images are missing in it. Nothing is drawn once the budget is spent."""
        tiles: list[Image.Image] = []
        bad: list[str] = []
        if self.budget <= 0 or isinstance(self.images, Missing):
            return "", bad
        for row in order.rows.tolist():
            try:
                tiles.append(square(self.images.image(row), order.pixels))
            except (BadImageError, JustrightError, OSError) as error:
                bad.append(str(error).splitlines()[0])
        if not tiles:
            return "", bad
        columns = min(order.columns, len(tiles))
        sheet = contact_sheet(tiles, columns, GAP)
        # the paper of the page shows between the images, whatever its color
        black = contact_sheet([np.zeros((order.pixels, order.pixels, 3), dtype=np.uint8)] * len(tiles), columns, GAP)
        sheet.putalpha(ImageOps.invert(black.convert("L")))
        size = f"width={sheet.width} height={sheet.height}"
        return f'<img src="{data_uri(sheet)}" {size} alt="{text(order.alt)}">', bad

    def _paid(self, order: SheetOrder, picture: str, bad: list[str]) -> Markup:
        if self.budget <= 0:
            self.n_unpaid += bool(len(order.rows))
            return Markup("")
        self.n_asked += len(order.rows)
        self.n_unreadable += len(bad)
        self.reason = self.reason or (bad[0] if bad else "")
        self.budget -= len(picture)
        if self.budget < 0:  # this one is one too many
            self.n_unpaid += 1
            return Markup("")
        return Markup(picture)
