"""Views of the images of a set, drawn by threads."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import torch
from jaxtyping import Float
from torch import Tensor

from justright.data.image_set import ImageSet
from justright.data.pixels import Pixels, to_pixels
from justright.data.recipe import ImageRecipe
from justright.data.views import Transform, draw_view
from justright.errors import BadImageError

Batch = Float[Tensor, "batch 3 size size"]


@dataclass(frozen=True, eq=False)
class ViewDrawer:
    """Draws views of `images`, whose ids are known. What it draws does not depend on `n_threads`."""

    images: ImageSet
    transform: Transform
    recipe: ImageRecipe
    seed: int
    n_threads: int = 4
    rows: Sequence[int] | None = None  # what errors call each image; None: by its place

    @property
    def ids(self) -> pa.ChunkedArray:
        """What chance depends on, beside the seed."""
        return self.images.table["id"]

    def one_of_each(self, rows: Sequence[int], numbers: Sequence[int]) -> Batch:
        """One view of each row, that with its number. A row that comes twice is decoded once."""
        with ThreadPoolExecutor(self.n_threads) as threads:
            distinct = list(dict.fromkeys(rows))
            pixels = dict(zip(distinct, threads.map(self._decode, distinct), strict=True))
            return torch.stack(list(threads.map(self._draw, [pixels[row] for row in rows], rows, numbers)))

    def all_of_each(self, rows: Sequence[int], numbers: Sequence[int]) -> list[Batch]:
        """Every view of `numbers` of each row, one batch a number, drawn in the calling thread."""
        decoded = [(self._decode(row), row) for row in rows]
        return [torch.stack([self._draw(*each, number) for each in decoded]) for number in numbers]

    def _decode(self, row: int) -> Pixels:
        try:
            return to_pixels(self.images.image(row))
        except BadImageError as error:
            raise BadImageError(
                f"image {row if self.rows is None else self.rows[row]}: {error.came}",
                expected=error.expected,
                advice="leave it out: take the good rows alone",
            ) from error

    def _draw(self, pixels: Pixels, row: int, number: int) -> Tensor:
        return draw_view(
            pixels, self.transform, self.recipe, seed=self.seed, image_id=self.ids[row].as_py(), view=number
        )
