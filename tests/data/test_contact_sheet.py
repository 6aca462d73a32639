"""A sheet of small images."""

from __future__ import annotations

import numpy as np
import pytest

from justright.data.contact_sheet import contact_sheet
from justright.errors import DataError


def test_a_contact_sheet_fills_rows_from_the_left():
    red, blue = (np.full((4, 6, 3), color, dtype=np.uint8) for color in ((255, 0, 0), (0, 0, 255)))
    sheet = contact_sheet([red, blue, red], columns=2, gap=1)
    assert sheet.size == (13, 9)
    assert [sheet.getpixel(at) for at in ((0, 0), (7, 0), (0, 5), (7, 5))] == [
        (255, 0, 0),
        (0, 0, 255),
        (255, 0, 0),
        (255, 255, 255),
    ]
    with pytest.raises(DataError, match="Image 1"):
        contact_sheet([red, red[:2]], columns=2)
