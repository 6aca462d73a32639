"""The images of a set, small: read once for all sheets of a page that show them."""

from __future__ import annotations

from functools import lru_cache

from PIL import Image, ImageOps

from justright.data.image_set import ImageSet

SIDE = 96  # pixels: more than any sheet shows, so that sheets can be made smaller from it
MOST = 2000  # images that are kept, in some 50 MB


class SmallImages:
    """Gives the middle square of each image, at most `SIDE` pixels wide, and keeps those it gave last.

    A page shows the same image among those of its cluster, on its first screen and on its map; to decode a photo takes
    longer than all that is done with it afterwards.
    """

    def __init__(self, images: ImageSet):
        self.images = images
        self.image = lru_cache(MOST)(self._image)

    def __len__(self) -> int:
        """How many images the set has."""
        return len(self.images)

    def _image(self, row: int) -> Image.Image:
        image = self.images.image(row)
        side = min(SIDE, *image.size)
        return ImageOps.fit(image, (side, side))
