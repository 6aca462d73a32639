"""Many small images as one: a sheet to look at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from justright.errors import DataError
from justright.types import Array

WHITE = (255, 255, 255)


def contact_sheet(
    images: Sequence[Image.Image | UInt8[Array, "height width 3"]], columns: int, gap: int = 2
) -> Image.Image:
    """Put images into rows of `columns`, left to right, on white. All have the size of the first."""
    if not images or columns < 1:
        raise DataError(
            f"A sheet of {len(images)} images in {columns} columns is empty", expected="at least one image and column"
        )
    tiles = [Image.fromarray(image) if isinstance(image, np.ndarray) else image for image in images]
    width, height = tiles[0].size
    odd = next((number for number, tile in enumerate(tiles) if tile.size != (width, height)), None)
    if odd is not None:
        raise DataError(
            f"Image {odd} of the sheet measures {tiles[odd].size}", expected=f"{(width, height)}, like the first"
        )
    rows = -(-len(tiles) // columns)
    sheet = Image.new("RGB", (columns * (width + gap) - gap, rows * (height + gap) - gap), WHITE)
    for number, tile in enumerate(tiles):
        row, column = divmod(number, columns)
        sheet.paste(tile, (column * (width + gap), row * (height + gap)))
    return sheet
