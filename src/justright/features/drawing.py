"""Views of the images of a set, drawn by threads while the network runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from jaxtyping import Float
from torch import Tensor

from justright.data.image_set import ImageSet
from justright.data.pixels import Pixels, to_pixels
from justright.data.recipe import ImageRecipe
from justright.data.views import Transform, draw_view
from justright.errors import BadImageError

Job = tuple[tuple[int, ...], tuple[int, ...]]
"""Rows of the image set, and a view number for each."""

LOOKAHEAD = 2
"""Jobs in preparation while one is used. Memory: that many batches of views."""


class ViewDrawer:
    """Draws views of `images` (whose ids are known). What it draws does not depend on `n_threads`."""

    def __init__(self, images: ImageSet, transform: Transform, recipe: ImageRecipe, seed: int, n_threads: int = 4):
        self.images = images
        self.transform = transform
        self.recipe = recipe
        self.seed = seed
        self.n_threads = n_threads
        self.ids = images.ids

    def draw(self, jobs: Iterable[Job]) -> Iterator[Float[Tensor, "batch 3 size size"]]:
        """The views of each job, in order. Jobs in a row with the same rows decode their images once."""
        with ThreadPoolExecutor(self.n_threads) as threads:
            prepared: deque[list[Future[Tensor]]] = deque()
            try:
                for futures in self._submit(threads, jobs):
                    prepared.append(futures)
                    if len(prepared) > LOOKAHEAD:
                        yield _stacked(prepared.popleft())
                while prepared:
                    yield _stacked(prepared.popleft())
            finally:
                threads.shutdown(cancel_futures=True)  # whoever stops early does not wait for the rest

    def views_of(self, rows: Sequence[int], numbers: Sequence[int]) -> list[Float[Tensor, "batch 3 size size"]]:
        """The views with these numbers of some images, decoded once, one batch a number, in the calling thread."""
        decoded = [self._decode(row) for row in rows]
        return [
            torch.stack([self._draw(pixels, row, number) for pixels, row in zip(decoded, rows, strict=True)])
            for number in numbers
        ]

    def _submit(self, threads: ThreadPoolExecutor, jobs: Iterable[Job]) -> Iterator[list[Future[Tensor]]]:
        rows: Sequence[int] = ()
        decoded: list[Future[Pixels]] = []
        for job_rows, numbers in jobs:
            if job_rows != rows:
                # submitted before the views that wait for them, so they are under way when these start
                rows, decoded = job_rows, [threads.submit(self._decode, row) for row in job_rows]
            views = zip(decoded, rows, numbers, strict=True)
            yield [threads.submit(self._view, pixels, row, number) for pixels, row, number in views]

    def _decode(self, row: int) -> Pixels:
        try:
            return to_pixels(self.images.image(row))
        except BadImageError as error:
            raise BadImageError(
                f"image {row}: {error.came}", expected=error.expected, advice="leave it out: give the good rows alone"
            ) from error

    def _view(self, pixels: Future[Pixels], row: int, number: int) -> Tensor:
        return self._draw(pixels.result(), row, number)

    def _draw(self, pixels: Pixels, row: int, number: int) -> Tensor:
        return draw_view(pixels, self.transform, self.recipe, seed=self.seed, image_id=self.ids[row], view=number)


def _stacked(futures: list[Future[Tensor]]) -> Tensor:
    return torch.stack([future.result() for future in futures])
