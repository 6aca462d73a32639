"""Small copies of images, made once and kept on disk."""

from __future__ import annotations

import io
import re
from pathlib import Path

from PIL import Image

from justright.data import ImageSet
from justright.utils.files import replacing
from justright.utils.hashing import hash_bytes

SIZES = (160, 640)  # longest side in pixels: a tile of the page, and the large view
CONTENT_ID = re.compile(r"[0-9a-f]{32}")
N_CHECKSUM = 32  # letters behind each copy


class Thumbnails:
    """JPEGs of the images of a set below `folder`, named by content: moved or renamed images need no new ones.

    Behind each stands a checksum of it and of its name; one that is damaged, or of another image, is made again.
    """

    def __init__(self, images: ImageSet, folder: Path):
        self.images = images
        self.folder = folder
        self._ids = images.table["id"]

    def get(self, row: int, size: int) -> bytes:
        """The copy of one image; BadImageError where it cannot be decoded, or its file was changed since the run."""
        file = self._file(row, size)
        if file.exists():
            content = file.read_bytes()
            kept = content[:-N_CHECKSUM]
            if content == _with_checksum(file.name, kept):
                return kept
        image = self.images.image(row)
        image.thumbnail((size, size), Image.Resampling.BICUBIC, reducing_gap=2.0)
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=85)
        data = buffer.getvalue()
        with replacing(file, is_flushed=False) as temporary:  # a flush for each of thousands would take minutes
            temporary.write_bytes(_with_checksum(file.name, data))
        return data

    def _file(self, row: int, size: int) -> Path:
        known = self.images.known_content(row) or self._ids[row].as_py()
        # without content ids the row has to do: reading the image to name it would be as slow as no cache
        name = known if known and CONTENT_ID.fullmatch(known) else f"row-{row}"
        return self.folder / name[-2:].rjust(2, "0") / f"{name}-{size}.jpg"


def _with_checksum(name: str, data: bytes) -> bytes:
    return data + hash_bytes(name.encode() + data).encode()
