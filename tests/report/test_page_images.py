from __future__ import annotations

import base64
import io
import re
from unittest.mock import patch

import numpy as np
import pytest
from PIL import Image, ImageOps

from justright.data import ImageSet, glyph_set, open_images
from justright.report.elements import Missing, environment
from justright.report.page_images import GAP, SIDE, PageImages, SheetOrder, SmallImages
from justright.utils.errors import BadImageError


@pytest.fixture
def images(make_tree):
    root = make_tree({"a": 6, "b": 6})
    (root / "a" / "0.png").write_bytes(b"no image")
    return open_images(root)


def order(*rows, pixels=16, columns=3):
    return SheetOrder(np.array(rows, dtype=np.int64), pixels, columns, "some <images>")


def opened(picture):
    return Image.open(io.BytesIO(base64.b64decode(picture.uri.partition("base64,")[2])))


def remarks(page_images):
    html = str(environment().get_template("macros.html").module.picture_notes(page_images))
    return re.findall("<p class=soft>(.*?)</p>", html)


def cost(pictures):
    """The number of characters that pictures take in the page."""
    return sum(len(picture.uri) + len(picture.alt) + 40 for picture in pictures)


def test_sheet_is_one_picture_with_transparent_gaps(images):
    page_images = PageImages(images, 100_000)
    picture = page_images.sheet(order(1, 2, 3, 4))
    assert picture.alt == "some <images>"
    sheet = opened(picture)
    assert (picture.width, picture.height) == sheet.size
    assert sheet.size == (3 * 16 + 2 * GAP, 2 * 16 + GAP)
    alpha = np.asarray(sheet)[..., 3]
    assert alpha[0, 0] == 255
    assert alpha[0, 16] == 0, "a gap"
    assert alpha[-1, -1] == 0, "no fifth image"
    assert remarks(page_images) == []


def test_unreadable_images_are_omitted_and_counted(images):
    page_images = PageImages(images, 100_000)
    first, second = page_images.sheets([order(0, 1), order(0)])
    assert opened(first).size == (16, 16)
    assert second is None
    (text,) = remarks(page_images)
    assert text.startswith("2 of 3 images could not be read, e.g. a/0.png")


def test_budget_limits_sheets_and_counts_omitted_ones(images):
    orders = [order(row) for row in range(1, 11)]
    full = list(PageImages(images, 10**6).sheets(orders))
    page_images = PageImages(images, cost(full[:2]) + 10)
    assert [bool(each) for each in page_images.sheets(orders)] == [True, True] + [False] * 8
    assert remarks(page_images) == ["8 sheets of images are omitted to keep this page small."]


def test_first_plan_within_the_budget_is_chosen(images):
    plans = [[order(row, pixels=pixels) for row in range(1, 11)] for pixels in (48, 32, 8)]
    costs = [cost(PageImages(images, 10**6).sheets(plan)) for plan in plans]
    assert costs[0] > costs[1] > costs[2]
    for budget, expected in ((10**6, 0), ((costs[0] + 2 * costs[1]) / 3, 1), (10, 2)):
        assert PageImages(images, int(budget)).first_that_fits(plans) is plans[expected]


def test_missing_images_give_a_reason():
    page_images = PageImages(Missing("the disk is gone"), 1000)
    assert page_images.sheet(order(1)) is None
    assert remarks(page_images) == ["No images: the disk is gone."]


def test_photos_are_cropped_to_a_square_and_never_enlarged(tmp_path):
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


def test_image_is_read_once_for_all_sheets(make_tree):
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
