"""Whatever a person names, as an image set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from justright.data import open_images
from justright.data.opening import unrecognised
from justright.utils.errors import DataError, MissingDataError


def test_wrong_places_are_named(tmp_path):
    with pytest.raises(MissingDataError, match="no such file or folder"):
        open_images(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no image that is recognised"):
        open_images(tmp_path / "empty")


def test_real_birds_open_from_their_zip(real_data):
    birds = open_images(real_data / "cub200.zip")
    assert len(birds.classes) == 200
    assert birds.hierarchy[0] == ("Procellariiformes", "Diomedeidae", "Albatross")
    assert np.asarray(birds.image(0)).shape[2] == 3


def test_a_folder_called_glyphs_is_not_mistaken(make_tree, monkeypatch):
    root = make_tree({"a": 1}, name="glyphs")
    monkeypatch.chdir(root.parent)
    assert open_images("glyphs").paths == ["a/0.png"]
    assert open_images(Path("glyphs")).paths == ["a/0.png"]


def test_an_empty_photo_folder_is_told_what_is_recognised_and_what_else_there_is(tmp_path, monkeypatch):
    monkeypatch.setattr("justright.data.folder.reads_heif", lambda: False)
    (tmp_path / "photos").mkdir()
    with pytest.raises(DataError, match="photos holds no image that is recognised, and no file") as refusal:
        open_images(tmp_path / "photos")
    assert ".jpeg, .jpg" in refusal.value.expected
    assert "class" not in str(refusal.value)
    for name in ("a.txt", "b.txt", "c.doc", "d.heic"):
        (tmp_path / "photos" / name).write_text("")
    with pytest.raises(DataError, match=r"and 4 other files \(a\.txt, b\.txt, c\.doc, \.\.\.\)") as refusal:
        open_images(tmp_path / "photos")
    assert refusal.value.advice == "pip install 'justright[heif]' to read 1 HEIF photo"
    assert unrecognised(tmp_path / "photos") == ["a.txt", "b.txt", "c.doc", "d.heic"]
