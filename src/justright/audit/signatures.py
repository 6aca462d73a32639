"""What the first bytes of a file say it is, whatever its name says."""

from __future__ import annotations

import os

SIGNATURES = (
    (b"\xff\xd8\xff", 0, "JPEG"),
    (b"\x89PNG\r\n", 0, "PNG"),
    (b"GIF8", 0, "GIF"),
    (b"WEBP", 8, "WebP"),
    (b"BM", 0, "BMP"),
    (b"II*\x00", 0, "TIFF"),
    (b"MM\x00*", 0, "TIFF"),
    (b"ftypavi", 4, "AVIF"),
    (b"\x00\x00\x00\x0cjP  ", 0, "JPEG 2000"),
)
"""Bytes, the offset where they stand, and the format that puts them there."""

FORMAT_OF_SUFFIX = {
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".png": "PNG",
    ".gif": "GIF",
    ".webp": "WebP",
    ".bmp": "BMP",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".avif": "AVIF",
    ".jp2": "JPEG 2000",
}


def format_of(data: bytes) -> str | None:
    """The format whose signature the bytes carry; None for text, formats without a signature and anything else."""
    return next((name for mark, start, name in SIGNATURES if data.startswith(mark, start)), None)


def contradicts_suffix(data: bytes, path: str) -> bool:
    """Whether the bytes are of one known format and the file's ending promises another."""
    promised = FORMAT_OF_SUFFIX.get(os.path.splitext(path)[1].lower())
    return promised is not None and format_of(data) not in (None, promised)


def is_cut_off(data: bytes) -> bool:
    """Whether a WebP file is shorter than its own header says; Pillow reports that as a broken decoder only."""
    return format_of(data) == "WebP" and int.from_bytes(data[4:8], "little") + 8 > len(data)
