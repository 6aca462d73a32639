"""From the bytes of an image file to pixels, refusing what is no image or too large to be meant."""

from __future__ import annotations

import io
import warnings

from PIL import Image, ImageOps, UnidentifiedImageError

from justright.errors import BadImageError

MAX_PIXELS = 100_000_000
"""Larger images are refused before they are decoded: a few kilobytes can unpack to gigabytes."""


def decode(data: bytes, name: str = "image") -> Image.Image:
    """The image as a person sees it: EXIF orientation applied, transparency on white, RGB.

    Raises BadImageError with the reason when the bytes are empty, no image, truncated or too large.
    """
    if not data:
        raise BadImageError(f"{name}: the file is empty")
    try:
        with warnings.catch_warnings():
            # Pillow warns of broken metadata and of large images; size is judged here, metadata does not matter
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(data))
            width, height = image.size
            if width * height > MAX_PIXELS:
                raise BadImageError(
                    f"{name}: too large, {width} x {height} pixels",
                    expected=f"at most {MAX_PIXELS:,} pixels",
                    advice="shrink the image, or leave it out",
                )
            image.load()
    except UnidentifiedImageError as error:
        raise BadImageError(f"{name}: not an image, or of a format Pillow cannot read") from error
    except Image.DecompressionBombError as error:
        raise BadImageError(f"{name}: too large, {error}") from error
    except (OSError, SyntaxError, ValueError, EOFError, MemoryError) as error:
        # Pillow's decoders fail in all of these ways on damaged files
        reason = "truncated" if "truncated" in str(error).lower() else "unreadable"
        raise BadImageError(f"{name}: {reason} ({error})") from error
    return to_rgb(image)


def to_rgb(image: Image.Image) -> Image.Image:
    """Three channels, upright, with transparent parts on white."""
    upright = ImageOps.exif_transpose(image) or image
    if upright.mode == "RGB":
        return upright
    if upright.has_transparency_data:
        layered = upright.convert("RGBA")
        white = Image.new("RGBA", layered.size, "white")
        return Image.alpha_composite(white, layered).convert("RGB")
    return upright.convert("RGB")
