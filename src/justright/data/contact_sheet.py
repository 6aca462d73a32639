"""Many small images as one: a sheet to look at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from justright.errors import DataError
from justright.types import Array

Tile = Image.Image | UInt8[Array, "_height _width 3"]


def contact_sheet(images: Sequence[Tile], columns: int, gap: int = 2) -> Image.Image:
    """Put images into rows of `columns`, left to right, on white. All have the size of the first."""
    if not images or columns < 1:
        came = f"A sheet of {len(images)} images in {columns} columns is empty"
        raise DataError(came, expected="at least one image and column")
    tiles = [Image.fromarray(image) if isinstance(image, np.ndarray) else image for image in images]
    width, height = tiles[0].size
    rows = -(-len(tiles) // columns)
    sheet = Image.new("RGB", (columns * (width + gap) - gap, rows * (height + gap) - gap), "white")
    for number, tile in enumerate(tiles):
        if tile.size != (width, height):
            came = f"Image {number} of the sheet measures {tile.size}"
            raise DataError(came, expected=f"{(width, height)}, like the first")
        row, column = divmod(number, columns)
        sheet.paste(tile, (column * (width + gap), row * (height + gap)))
    return sheet
