"""Readers: pixels by path, and content ids that are computed once for each version of a file."""

from __future__ import annotations

import io
import os
import pickle
import struct
import sys
import tracemalloc
import zipfile
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from tests.conftest import picture
from tests.data.drawn_files import file_of

from justright.data import open_folder, open_images
from justright.data import readers as readers_module
from justright.data.catalog.glyphs import GlyphReader
from justright.data.folder import write_tree
from justright.data.objects import ObjectReader
from justright.data.readers import BytesReader, FolderReader, ZipReader
from justright.features.backbone import load_backbone
from justright.runs.problem import make_problem
from justright.runs.run import Run
from justright.runs.spec import RunSpec
from justright.utils.errors import BadImageError, BadKind, DataError
from justright.utils.hashing import hash_bytes

opened: Counter[str] | None = None


def count_opening(event: str, arguments: tuple[object, ...]) -> None:
    if opened is not None and event == "open" and str(arguments[0]).endswith(".png"):
        opened[str(arguments[0])] += 1


@pytest.fixture
def openings():
    """How often each PNG was opened by anything in this process."""
    global opened
    if not getattr(count_opening, "is_installed", False):  # a hook cannot be removed
        sys.addaudithook(count_opening)
        count_opening.is_installed = True  # type: ignore[attr-defined]
    opened = Counter()
    yield opened
    opened = None


@pytest.fixture
def folder(tmp_path):
    for seed in range(3):
        picture(seed).save(tmp_path / f"{seed}.png")
    return tmp_path


def letters(folder, script):
    """24 drawn letters of a script as files."""
    write_tree(open_images(f"glyphs:per_class=3,size=32,scripts={script}").take(range(24)), folder)
    return open_images(folder)


def run_kmeans(problem, folder):
    spec = RunSpec(method="kmeans", selector="none", scale="small", backbone="glyph_vit", n_target=12, settings={})
    Run(problem, spec, folder, load_backbone("glyph_vit")).all()


def test_run_hashes_and_decodes_each_file_once(tmp_path, openings, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    scripts = {"pool": "old-italic", "labeled": "hebrew", "target": "lao"}
    pool, labeled, target = (letters(tmp_path / part, script) for part, script in scripts.items())
    openings.clear()
    problem, copies = make_problem([pool], labeled, target).without_copies()
    run_kmeans(problem, tmp_path / "run")
    files = [str(path) for part in scripts for path in (tmp_path / part).rglob("*.png")]
    assert copies.n_left_out == 0
    assert len(files) == 72
    # hashed, then decoded once, for frozen features and plain views together
    assert {openings[file] for file in files} == {2}


def test_run_that_keeps_copies_hashes_each_file_once(tmp_path, openings, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    labeled, target = letters(tmp_path / "labeled", "hebrew"), letters(tmp_path / "target", "lao")
    openings.clear()
    run_kmeans(make_problem([], labeled, target), tmp_path / "run")
    assert {openings[file] for file in openings if "/run/" not in file} == {2}


def test_content_id_is_the_hash_of_the_bytes_and_is_computed_once(folder, openings):
    data = (folder / "1.png").read_bytes()
    openings.clear()
    assert {FolderReader(folder).content_id("1.png") for _ in range(3)} == {hash_bytes(data)}
    assert openings[str(folder / "1.png")] == 1


@pytest.mark.parametrize("same_size", [True, False])
def test_file_that_changes_gets_another_id(folder, same_size):
    reader, file = FolderReader(folder), folder / "0.png"
    before, data = reader.content_id("0.png"), file.read_bytes()
    file.write_bytes(data[:-1] + b"\0" if same_size else data + b"\0")
    assert reader.content_id("0.png") != before
    assert reader.content_id("0.png") == hash_bytes(file.read_bytes())


def test_ids_of_a_table_are_not_content_ids(folder):
    (folder / "list.csv").write_text("path,id\n0.png,claimed\n")
    images = open_images(folder / "list.csv")
    assert images.ids == ["claimed"]
    assert images.readers[f"folder:{folder}"].content_id("0.png") == hash_bytes((folder / "0.png").read_bytes())


def test_zip_members_are_hashed_again_when_the_archive_changes(tmp_path):
    archive, ids = tmp_path / "a.zip", []
    for seed in (1, 2):
        with zipfile.ZipFile(archive, "w") as made:
            made.writestr("x.png", file_of(picture(seed)))
        ids.append(ZipReader(archive).content_id("x.png"))
    assert ids == [hash_bytes(file_of(picture(seed))) for seed in (1, 2)]


def test_zip_reader_can_be_pickled(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        made.writestr("x.png", file_of(picture(1)))
    reader = ZipReader(tmp_path / "a.zip")
    assert reader.image("x.png").size == (16, 12)
    assert pickle.loads(pickle.dumps(reader)).encoded("x.png") == reader.encoded("x.png")


def test_missing_files_have_a_reason(folder, tmp_path):
    (folder / "deep").mkdir()
    with pytest.raises(BadImageError, match="a folder, a pipe or a device"):
        FolderReader(folder).encoded("deep")
    with pytest.raises(BadImageError, match="No such file"):
        FolderReader(folder).content_id("gone.png")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        made.writestr("x.png", b"")
    with pytest.raises(BadImageError, match=r"not in a\.zip"):
        ZipReader(tmp_path / "a.zip").content_id("y.png")


def test_content_id_of_an_object_is_that_of_its_file_or_its_pixels(folder):
    image = picture(3)
    forms = [image, np.asarray(image), file_of(image), {"bytes": None, "path": str(folder / "0.png")}]
    reader = ObjectReader("forms", [[form] for form in forms], 0)
    pixels, again, of_bytes, of_file = (reader.content_id(str(row)) for row in range(4))
    assert pixels == again
    assert of_bytes == hash_bytes(file_of(image))
    assert of_file == hash_bytes((folder / "0.png").read_bytes())
    with pytest.raises(DataError, match="image 0 is a int"):
        ObjectReader("numbers", [[0]], 0).image("0")


def test_bytes_in_a_table_are_read_by_position():
    reader = BytesReader("t", pa.chunked_array([[file_of(picture(0)), None]]))
    assert Image.open(io.BytesIO(reader.encoded("0"))).size == (16, 12)
    assert reader.content_id("0") == hash_bytes(file_of(picture(0)))
    assert reader.encoded("1") == b""


def test_id_of_a_drawing_needs_no_drawing(monkeypatch):
    monkeypatch.setattr(GlyphReader, "image", None)
    reader = GlyphReader()
    assert reader.content_id("a/b/c/1") != reader.content_id("a/b/c/2")


def test_missing_image_raises_when_read(make_tree):
    root = make_tree({"a": 1})
    images = open_folder(root)
    (root / "a" / "0.png").unlink()
    with pytest.raises(BadImageError, match=r"a/0.png: cannot be read"):
        images.image(0)


def test_pipe_is_rejected_without_waiting(make_tree):
    root = make_tree({"a": 1})
    os.mkfifo(root / "a" / "1.png")
    with pytest.raises(BadImageError, match="a pipe or a device"):
        open_folder(root).image(1)


def peak_of(call) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(BadImageError) as error:
            call()
        assert error.value.kind is BadKind.TOO_LARGE
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_file_too_large_for_an_image_is_rejected_unread(tmp_path, monkeypatch):
    n_bytes, piece = 200 << 20, bytes(1 << 20)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as made, made.open("x.png", "w") as member:
        for _ in range(n_bytes >> 20):
            member.write(piece)
    with (tmp_path / "x.png").open("wb") as file:
        file.truncate(n_bytes)
    rows = [[{"bytes": None, "path": str(tmp_path / "x.png")}]]
    readers = [(ZipReader(tmp_path / "a.zip"), "x.png"), (FolderReader(tmp_path), "x.png")]
    readers.append((ObjectReader("rows", rows, 0), "0"))
    monkeypatch.setattr(readers_module, "MAX_FILE_BYTES", n_bytes - 1)
    for reader, path in readers:
        assert peak_of(lambda reader=reader, path=path: reader.image(path)) < 20 << 20


def test_file_that_grows_while_it_is_read_is_rejected(monkeypatch):
    monkeypatch.setattr(readers_module, "MAX_FILE_BYTES", 1000)
    with pytest.raises(BadImageError, match="too large"):
        readers_module.read_all(io.BytesIO(bytes(1001)), 10, "x.png")


def test_zip_member_larger_than_its_header_is_rejected(tmp_path):
    """zipfile unpacks all that a member holds, whatever size the directory of the zip claims for it."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("x.png", bytes(200 << 20))
    data = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(data.replace(struct.pack("<L", 200 << 20), struct.pack("<L", 1000)))
    tracemalloc.start()
    try:
        with pytest.raises(BadImageError):
            ZipReader(tmp_path / "a.zip").image("x.png")
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
