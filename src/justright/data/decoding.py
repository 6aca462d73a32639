"""Decode image files, and reject those that are no image or far too large."""

from __future__ import annotations

import io
import os
import re
import warnings
from functools import cache

import numpy as np
from PIL import ExifTags, Image, UnidentifiedImageError

from justright.utils.errors import BadImageError, BadKind

NOT_AN_IMAGE = "not an image, or of a format Pillow cannot read"
MAX_PIXELS = 100_000_000  # larger images are rejected before decoding: a few kilobytes can unpack to gigabytes
HEIF_EXTRA = "pip install 'justright[heif]'"
HEIF_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")
# What makes an image upright, by EXIF orientation. ImageOps.exif_transpose rewrites metadata and fails on odd ones.
TURNS: dict[object, Image.Transpose] = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
PILLOW_WARNINGS = ("ignore", None, Warning, re.compile(r"PIL\."), 0)  # as in warnings.filters


def hide_pillow_warnings() -> None:
    """Hide Pillow's warnings about odd metadata, which does not matter here, and large images, which `decode` rejects.

    The filter stays: removing it after each image would not be safe among threads.
    """
    if PILLOW_WARNINGS not in warnings.filters:
        warnings.filterwarnings("ignore", module=PILLOW_WARNINGS[3].pattern)


@cache
def reads_heif() -> bool:
    """Whether HEIF photos (.heic), as phones take them, can be read: if the extra `heif` is installed."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        return False
    register_heif_opener()
    return True


def is_heif(data: bytes) -> bool:
    """Whether a file starts like a HEIF photo. AVIF, which starts alike, is read by Pillow itself."""
    return data[4:8] == b"ftyp" and data[8:12] in HEIF_BRANDS


def decode(data: bytes, name: str = "image") -> Image.Image:
    """Decode an image as a person sees it: EXIF orientation applied, transparency on white, RGB.

    Raises BadImageError with the reason if the bytes are empty, no image, truncated or too large.
    """
    if not data:
        raise BadImageError(f"{name}: the file is empty", BadKind.EMPTY)
    if is_heif(data):
        reads_heif()  # registers the reader
    hide_pillow_warnings()
    try:
        image = Image.open(io.BytesIO(data))
        width, height = image.size
        if width * height > MAX_PIXELS:
            raise BadImageError(
                f"{name}: too large, {width} x {height} pixels",
                BadKind.TOO_LARGE,
                expected=f"at most {MAX_PIXELS:,} pixels",
                advice="shrink the image, or leave it out",
            )
        image.load()
        return to_rgb(image)
    except BadImageError:
        raise
    except Exception as error:  # decoders raise many kinds of errors for damaged files
        kind, reason = _why(error, data)
        raise BadImageError(f"{name}: {reason}", kind) from error


def _why(error: Exception, data: bytes) -> tuple[BadKind, str]:
    """Why these bytes cannot be decoded."""
    if isinstance(error, Image.DecompressionBombError):
        return BadKind.TOO_LARGE, f"too large, {error}"
    if isinstance(error, UnidentifiedImageError):
        if is_heif(data) and not reads_heif():
            return BadKind.NO_HEIF, f"a HEIF photo, which needs the extra: {HEIF_EXTRA}"
        if known := format_of(data):  # Pillow cannot identify a file that ends inside its header
            return BadKind.TRUNCATED, f"starts like {known}, but ends or is damaged before the pixels"
        return BadKind.NOT_AN_IMAGE, NOT_AN_IMAGE
    if is_cut_off(data):
        return BadKind.TRUNCATED, "truncated (shorter than its header states)"
    kind = BadKind.TRUNCATED if "truncated" in str(error).lower() else BadKind.UNREADABLE
    return kind, f"{kind} ({error})"


def upright_size(data: bytes, name: str = "image") -> tuple[int, int]:
    """Width and height of an image as a person sees it, without decoding its pixels; BadImageError if that fails."""
    hide_pillow_warnings()
    reads_heif()
    try:
        with Image.open(io.BytesIO(data)) as image:
            width, height = image.size
            is_turned = image.getexif().get(ExifTags.Base.Orientation, 1) in (5, 6, 7, 8)
    except Exception as error:  # decoders raise many kinds of errors for damaged files
        raise BadImageError(f"{name}: {BadKind.UNREADABLE} ({error})", BadKind.UNREADABLE) from error
    return (height, width) if is_turned else (width, height)


def to_rgb(image: Image.Image) -> Image.Image:
    """Convert to three channels of 8 bits, upright, with transparent parts on white."""
    upright = _upright(image)
    if upright.mode == "RGB":
        return upright
    if upright.has_transparency_data:
        white = Image.new("RGBA", upright.size, "white")
        return Image.alpha_composite(white, upright.convert("RGBA")).convert("RGB")
    if upright.mode.startswith("I") or upright.mode == "F":
        return _from_deep_gray(upright)
    return upright.convert("RGB")


def _upright(image: Image.Image) -> Image.Image:
    turn = TURNS.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    if turn is None:
        return image
    upright = image.transpose(turn)
    for metadata in ("exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp"):
        upright.info.pop(metadata, None)  # so that it is not turned a second time
    return upright


def _from_deep_gray(image: Image.Image) -> Image.Image:
    """Convert 16-bit and floating-point gray to 8 bits; Pillow's conversion would clip it to white or black."""
    gray = np.asarray(image, dtype=np.float32)
    brightest = float(gray.max(initial=0.0))
    white = 65535.0
    if image.mode == "F" and brightest <= 1:
        white = 1.0
    elif brightest <= 255:
        white = 255.0
    return Image.fromarray(np.clip(gray * (255 / white), 0, 255).astype(np.uint8)).convert("RGB")


def format_of(data: bytes) -> str | None:
    """The format that the first bytes belong to, by Pillow's name such as PNG; None if it is unknown to Pillow."""
    if is_heif(data):
        return "HEIF" if reads_heif() else None
    Image.init()
    start = data[:16].ljust(16, b"\0")
    for name, (_, accept) in Image.OPEN.items():
        if accept is not None and accept(start) is True:
            return name
    return None


def format_against_suffix(data: bytes, path: str) -> str | None:
    """The format of the bytes if the suffix is that of another one, otherwise None."""
    actual, by_suffix = format_of(data), Image.registered_extensions().get(os.path.splitext(path)[1].lower())
    return None if by_suffix in (None, actual) else actual


def is_cut_off(data: bytes) -> bool:
    """Whether a WebP file is shorter than its header states; Pillow only reports a broken decoder."""
    return format_of(data) == "WEBP" and int.from_bytes(data[4:8], "little") + 8 > len(data)
