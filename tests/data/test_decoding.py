from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
from PIL import Image
from tests.conftest import picture
from tests.data.drawn_files import file_of

from justright.data import decoding, open_images
from justright.data.decoding import decode
from justright.utils.errors import BadImageError, BadKind


@pytest.mark.parametrize("mode", ["L", "P", "CMYK", "1", "LA", "RGBA", "YCbCr"])
def test_every_mode_becomes_rgb(mode):
    image = decode(file_of(picture(0).convert(mode), "TIFF" if mode in {"CMYK", "YCbCr"} else "PNG"))
    assert image.mode == "RGB"
    assert image.size == (16, 12)


def test_ycbcr_keeps_its_color():
    red, blue = (Image.new("RGB", (8, 8), color).convert("YCbCr") for color in ("red", "blue"))
    seen = np.asarray(decode(file_of(red, "TIFF", save_all=True, append_images=[blue])), dtype=int)
    assert np.abs(seen - (255, 0, 0)).max() <= 1


def test_exif_orientation_is_applied():
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    assert decode(file_of(picture(0), "JPEG", exif=exif)).size == (12, 16)


def test_transparent_parts_are_white():
    clear = Image.new("RGBA", (2, 2), (255, 0, 0, 0))
    assert np.asarray(decode(file_of(clear))).min() == 255


@pytest.mark.parametrize(
    ("deep", "form"),
    [
        (np.linspace(0, 65535, 256).astype(np.uint16).reshape(16, 16), "PNG"),
        (np.linspace(0, 1, 256).astype(np.float32).reshape(16, 16), "TIFF"),
        (np.linspace(0, 255, 256).astype(np.float32).reshape(16, 16), "TIFF"),
    ],
)
def test_deep_gray_is_scaled_not_clipped(deep, form):
    seen = np.asarray(decode(file_of(Image.fromarray(deep), form)))
    assert seen.min() == 0
    assert seen.max() >= 254
    assert seen.mean() == pytest.approx(127, abs=2)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"hello, I am a text", "not an image"),
        (file_of(picture(0, (64, 64)), "JPEG")[:700], "truncated"),
        (file_of(picture(0, (64, 64)))[:900], "truncated|unreadable"),
    ],
)
def test_bad_files_are_rejected_with_a_reason(data, reason):
    with pytest.raises(BadImageError, match=rf"photo\.jpg: .*({reason})"):
        decode(data, "photo.jpg")


def heif() -> bytes:
    pytest.importorskip("pillow_heif").register_heif_opener()
    return file_of(picture(0, (64, 48)), "HEIF", quality=100)


def test_heif_and_avif_are_read(make_tree, tmp_path):
    assert decode(heif()).size == (64, 48)
    assert decode(file_of(picture(0, (64, 48)), "AVIF")).size == (64, 48)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "phone.HEIC").write_bytes(heif())
    assert open_images(tmp_path / "photos").image(0).mode == "RGB"


def test_heif_without_the_extra_names_the_extra(monkeypatch):
    data = heif()
    monkeypatch.setattr(decoding, "reads_heif", lambda: False)
    monkeypatch.delitem(Image.OPEN, "HEIF")
    monkeypatch.setattr(Image, "ID", [each for each in Image.ID if each != "HEIF"])
    with pytest.raises(BadImageError, match=r"pip install 'justright\[heif\]'") as error:
        decode(data, "phone.heic")
    assert error.value.kind is BadKind.NO_HEIF
    assert decoding.format_of(data) is None


@pytest.mark.parametrize(("is_there", "reads"), [(True, True), (False, False)])
def test_heif_is_read_only_with_the_extra(monkeypatch, is_there, reads):
    if is_there:
        pytest.importorskip("pillow_heif")
    else:
        monkeypatch.setitem(sys.modules, "pillow_heif", None)
    assert decoding.reads_heif.__wrapped__() == reads


def test_pillow_warnings_are_hidden_from_the_first_decode_on():
    large, pixels = file_of(Image.new("L", (40, 40))), Image.MAX_IMAGE_PIXELS
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("error")
        Image.MAX_IMAGE_PIXELS = 1000  # Pillow warns about larger images, and raises for images twice as large
        try:
            assert decode(large).size == (40, 40)
            n_filters = len(warnings.filters)
            decode(large)
            assert len(warnings.filters) == n_filters
        finally:
            Image.MAX_IMAGE_PIXELS = pixels
