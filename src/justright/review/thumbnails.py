"""Small copies of images, cached on disk."""

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
N_CHECKSUM = 32  # characters of the checksum after each copy


class Thumbnails:
    """JPEGs of the images of a set below `folder`, named by content, so that renamed images keep theirs.

    Each ends in a checksum of its name and content; damaged or exchanged files are replaced.
    """

    def __init__(self, images: ImageSet, folder: Path):
        self.images = images
        self.folder = folder

    def get(self, row: int, size: int) -> bytes:
        """The copy of one image; BadImageError if it cannot be decoded or changed since the run."""
        file = self._file(row, size)
        if file.exists():
            content = file.read_bytes()
            data = content[:-N_CHECKSUM]
            if content == _with_checksum(file.name, data):
                return data
        image = self.images.image(row)
        image.thumbnail((size, size), Image.Resampling.BICUBIC, reducing_gap=2.0)
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=85)
        data = buffer.getvalue()
        with replacing(file, is_flushed=False) as temporary:  # flushing thousands of files would take minutes
            temporary.write_bytes(_with_checksum(file.name, data))
        return data

    def _file(self, row: int, size: int) -> Path:
        content = self.images.known_content(row)
        # the column may hold any text in a table that another program wrote
        name = content if content and CONTENT_ID.fullmatch(content) else f"row-{row}"
        return self.folder / name[-2:].rjust(2, "0") / f"{name}-{size}.jpg"


def _with_checksum(name: str, data: bytes) -> bytes:
    return data + hash_bytes(name.encode() + data).encode()
