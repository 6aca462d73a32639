from __future__ import annotations

import pytest
from PIL import Image

from justright.data import glyph_set, open_folder
from justright.data.export import contact_sheet, write_tree


@pytest.mark.parametrize("n_processes", [1, 2])
def test_a_written_tree_opens_as_the_same_classes_and_pixels(tmp_path, n_processes):
    images = glyph_set(per_class=25, scripts=["digits"])
    assert write_tree(images, tmp_path / "out", n_processes) == 250
    again = open_folder(tmp_path / "out")
    assert [name.rpartition("/")[2] for name in again.classes.values()] == sorted(images.classes.values())
    assert set(again.hierarchy.values()) == set(images.hierarchy.values())
    row = again.paths.index(f"{images.paths[30]}.png")
    assert again.image(row).tobytes() == images.image(30).tobytes()


def test_a_second_run_writes_only_what_is_missing(tmp_path):
    images = glyph_set(per_class=2, scripts=["digits"])
    write_tree(images, tmp_path, 1)
    lost = next(tmp_path.rglob("*.png"))
    lost.unlink()
    assert write_tree(images, tmp_path, 1) == 1
    assert lost.exists()
    assert not list(tmp_path.rglob(".*"))


def test_a_contact_sheet_fills_rows_from_the_left():
    red, blue = (Image.new("RGB", (6, 4), color) for color in ("red", "blue"))
    sheet = contact_sheet([red, blue, red], columns=2, gap=1)
    assert sheet.size == (13, 9)
    assert [sheet.getpixel(at) for at in ((0, 0), (7, 0), (0, 5), (7, 5))] == [
        (255, 0, 0),
        (0, 0, 255),
        (255, 0, 0),
        (255, 255, 255),
    ]
