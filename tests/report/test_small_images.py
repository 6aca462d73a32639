from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from PIL import Image, ImageOps

from justright.data import ImageSet, glyph_set, open_images
from justright.errors import BadImageError
from justright.report.page_images import PageImages, SheetOrder
from justright.report.small_images import SIDE, SmallImages


def test_a_photo_is_its_middle_square_and_what_is_small_stays_as_it_is(tmp_path):
    photo = Image.radial_gradient("L").resize((400, 300)).convert("RGB")
    photo.save(tmp_path / "photo.png")
    photo.resize((40, 30)).save(tmp_path / "small.png")
    found = SmallImages(open_images(tmp_path))
    assert len(found) == 2
    assert found.image(0).size == (SIDE, SIDE)
    assert found.image(1).size == (30, 30)
    both = [np.asarray(ImageOps.fit(image, (48, 48)), float) for image in (found.image(0), photo)]
    assert np.abs(both[0] - both[1]).max() < 5, "a sheet looks as if it were made of the photo"


def test_sheets_of_drawn_images_are_the_same():
    images = glyph_set(2, ["greek"])
    order = SheetOrder(np.arange(12), 52, 4, "letters")
    assert PageImages(SmallImages(images), 10**6).sheet(order) == PageImages(images, 10**6).sheet(order)


def test_an_image_is_read_once_for_all_sheets_and_a_bad_one_is_told_each_time(make_tree):
    root = make_tree({"a": 3})
    (root / "a" / "0.png").write_bytes(b"no image")
    images = SmallImages(open_images(root))
    with patch.object(ImageSet, "image", autospec=True, side_effect=ImageSet.image) as image:
        for pixels in (16, 8):
            page_images = PageImages(images, 10**6)
            page_images.sheet(SheetOrder(np.array([1, 2]), pixels, 2, ""))
    assert image.call_count == 2
    for _ in range(2):
        with pytest.raises(BadImageError):
            images.image(0)
