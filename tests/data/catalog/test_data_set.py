"""A data set that someone adds from outside the package, the way CONTRIBUTING shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image
from tests.contributing_examples import example

from justright.cli import main
from justright.data import ImageSet, open_images
from justright.data.catalog import DATA_SETS, DataSet
from justright.utils.errors import DataError, JustrightError, MissingDataError


@pytest.fixture
def shells(tmp_path):
    for part in ("train", "test"):
        for species in ("cockle", "whelk"):
            (tmp_path / part / species).mkdir(parents=True)
            Image.new("RGB", (8, 8)).save(tmp_path / part / species / "1.png")
    example("data set")
    yield tmp_path
    del DATA_SETS["shells"]


def test_added_data_set_opens_by_name_and_folder(shells):
    images = open_images(f"shells:{shells}")
    assert images.datasets == ["shells"]
    assert images.classes == {0: "cockle", 1: "whelk"}
    assert images.of_split("train").paths == ["train/cockle/1.png", "train/whelk/1.png"]
    assert images.image(3).size == (8, 8)


def test_command_line_lists_an_added_data_set(shells):
    (last,) = json.loads(CliRunner().invoke(main, ["data", "--list", "--json"]).stdout)[-1:]
    added = DATA_SETS["shells"]
    expected = {"title": added.title, "licence": added.licence, "where": added.where, "layout": added.layout}
    assert last == {"name": "shells", **expected}
    shown = CliRunner().invoke(main, ["data", "show", f"shells:{shells}", "--json"])
    assert json.loads(shown.stdout)["classes"] == 2


def test_missing_data_error_has_layout_and_url(shells):
    (shells / "test" / "whelk" / "1.png").unlink()
    added = DATA_SETS["shells"]
    with pytest.raises(MissingDataError) as error:
        open_images(f"shells:{shells}")
    assert all(part in str(error.value) for part in (str(shells / "test" / "whelk"), added.layout, added.where))


def test_missing_folder_error_shows_name_and_folder(shells, monkeypatch):
    monkeypatch.chdir(shells / "test")
    with pytest.raises(MissingDataError, match="NAME:FOLDER"):
        open_images("shells:")


def test_folder_that_cannot_be_read_is_an_error_of_the_data():
    def loader(root: Path) -> ImageSet:
        raise PermissionError(13, "Permission denied", str(root))

    with pytest.raises(DataError, match=r"closed cannot be read \(Permission denied\)"):
        DataSet("Closed", loader, "", "", "").load("closed")


def test_name_that_is_taken_is_rejected(shells):
    with pytest.raises(JustrightError, match="a second data set named 'cub'"):
        DATA_SETS.add("cub", DATA_SETS["shells"], "")


def test_every_data_set_has_a_url_and_a_layout():
    for name in DATA_SETS:
        entry = DATA_SETS[name]
        assert isinstance(entry, DataSet)
        assert all((DATA_SETS.about(name), entry.title, entry.licence, entry.where, entry.layout))
