"""From the bytes of an image file to pixels, refusing what is no image or far too large."""

from __future__ import annotations

import io
import warnings
from functools import cache

import numpy as np
from PIL import ExifTags, Image, UnidentifiedImageError

from justright.utils.errors import BadImageError, BadKind

NOT_AN_IMAGE = "not an image, or of a format Pillow cannot read"
MAX_PIXELS = 100_000_000  # larger images are refused before they are decoded: a few kilobytes can unpack to gigabytes
HEIF_EXTRA = "pip install 'justright[heif]'"
HEIF_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")
# what makes an image upright, by EXIF orientation; Pillow's own way writes the metadata anew and fails on odd ones
TURNS: dict[object, Image.Transpose] = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# Pillow warns of odd metadata and of large images. Metadata does not matter here and size is judged below; a filter
# around each call would not be safe among threads.
warnings.filterwarnings("ignore", module=r"PIL\.")


@cache
def reads_heif() -> bool:
    """Whether photos in HEIF (.heic), as phones take them, can be read: where the extra `heif` is installed."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        return False
    register_heif_opener()
    return True


def is_heif(data: bytes) -> bool:
    """Whether a file begins like a photo in HEIF. AVIF, which begins alike, is read by Pillow itself."""
    return data[4:8] == b"ftyp" and data[8:12] in HEIF_BRANDS


def decode(data: bytes, name: str = "image") -> Image.Image:
    """The image as a person sees it: EXIF orientation applied, transparency on white, RGB.

    Raises BadImageError with the reason when the bytes are empty, no image, truncated or too large.
    """
    if not data:
        raise BadImageError(f"{name}: the file is empty", BadKind.EMPTY)
    lacks_heif = is_heif(data) and not reads_heif()
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
    except Exception as error:
        # decoders fail on damaged files in more ways than anyone has listed; nothing is hidden, for it is said
        kind = BadKind.TRUNCATED if "truncated" in str(error).lower() else BadKind.UNREADABLE
        reason = f"{kind} ({error})"
        if isinstance(error, UnidentifiedImageError) and lacks_heif:
            kind, reason = BadKind.NO_HEIF, f"a photo in HEIF, which needs the extra: {HEIF_EXTRA}"
        elif isinstance(error, UnidentifiedImageError):
            kind, reason = BadKind.NOT_AN_IMAGE, NOT_AN_IMAGE
        elif isinstance(error, Image.DecompressionBombError):
            kind, reason = BadKind.TOO_LARGE, f"too large, {error}"
        raise BadImageError(f"{name}: {reason}", kind) from error


def is_image_start(start: bytes) -> bool:
    """Whether a format that Pillow reads begins with these bytes; formats without a signature do not count."""
    if is_heif(start):
        return reads_heif()
    Image.init()
    return any(accept is not None and accept(start[:16].ljust(16, b"\0")) is True for _, accept in Image.OPEN.values())


def to_rgb(image: Image.Image) -> Image.Image:
    """Three channels of 8 bits, upright, with transparent parts on white."""
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
        upright.info.pop(metadata, None)  # nobody turns it a second time
    return upright


def _from_deep_gray(image: Image.Image) -> Image.Image:
    """16-bit and floating-point gray in 8 bits; Pillow's own conversion would clip all of it to white or black."""
    gray = np.asarray(image, dtype=np.float32)
    top = float(gray.max(initial=0.0))
    full = 1.0 if image.mode == "F" and top <= 1 else 255.0 if top <= 255 else 65535.0
    return Image.fromarray(np.clip(gray * (255 / full), 0, 255).astype(np.uint8)).convert("RGB")
