"""What the first bytes of a file say it is, whatever its name says."""

from __future__ import annotations

import os

SIGNATURES = (
    (b"\xff\xd8\xff", 0, "JPEG", (".jpg", ".jpeg")),
    (b"\x89PNG\r\n", 0, "PNG", (".png",)),
    (b"GIF8", 0, "GIF", (".gif",)),
    (b"WEBP", 8, "WebP", (".webp",)),
    (b"BM", 0, "BMP", (".bmp",)),
    (b"II*\x00", 0, "TIFF", (".tif", ".tiff")),
    (b"MM\x00*", 0, "TIFF", (".tif", ".tiff")),
    (b"ftypavi", 4, "AVIF", (".avif",)),
    (b"ftyphei", 4, "HEIF", (".heic", ".heif", ".hif")),
    (b"\x00\x00\x00\x0cjP  ", 0, "JPEG 2000", (".jp2",)),
)
"""Bytes, the offset where they stand, the format that puts them there, and how names of its files end."""

FORMAT_OF_SUFFIX = {suffix: name for _, _, name, suffixes in SIGNATURES for suffix in suffixes}


def format_of(data: bytes) -> str | None:
    """The format whose signature the bytes carry; None for text, formats without a signature and anything else."""
    return next((name for mark, start, name, _ in SIGNATURES if data.startswith(mark, start)), None)


def format_against_suffix(data: bytes, path: str) -> str | None:
    """The format of the bytes where the file's ending promises another one; otherwise None."""
    found, promised = format_of(data), FORMAT_OF_SUFFIX.get(os.path.splitext(path)[1].lower())
    return None if promised in (None, found) else found


def is_cut_off(data: bytes) -> bool:
    """Whether a WebP file is shorter than its own header says; Pillow reports that as a broken decoder only."""
    return format_of(data) == "WebP" and int.from_bytes(data[4:8], "little") + 8 > len(data)
