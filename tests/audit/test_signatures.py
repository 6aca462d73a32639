"""What the first bytes of a file say."""

from __future__ import annotations

import pytest
from PIL import Image
from tests.audit.drawn_files import file_of

from justright.audit.signatures import format_against_suffix, format_of, is_cut_off

FORMATS = {"JPEG": "JPEG", "PNG": "PNG", "GIF": "GIF", "WEBP": "WebP", "BMP": "BMP", "TIFF": "TIFF"}


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_is_known_by_its_first_bytes(kind):
    assert format_of(file_of(Image.new("RGB", (8, 8)), kind)) == FORMATS[kind]


@pytest.mark.parametrize("data", [b"", b"Dear diary", bytes(100)])
def test_what_carries_no_signature_has_no_format(data):
    assert format_of(data) is None


@pytest.mark.parametrize(("name", "found"), [("a.jpg", "PNG"), ("a.PNG", None), ("a", None), ("a.ppm", None)])
def test_only_an_ending_that_promises_another_format_is_wrong(name, found):
    assert format_against_suffix(file_of(Image.new("RGB", (8, 8))), name) == found


def test_text_with_the_ending_of_an_image_contradicts_nothing():
    assert format_against_suffix(b"Dear diary", "a.jpg") is None


def test_a_webp_that_is_shorter_than_its_header_says_is_cut_off():
    whole = file_of(Image.new("RGB", (64, 64)), "WEBP")
    assert not is_cut_off(whole)
    assert is_cut_off(whole[:-1])
    assert not is_cut_off(file_of(Image.new("RGB", (8, 8)))[:-1])
