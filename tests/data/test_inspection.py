"""One pass over the files: ids, looks, formats and reasons."""

from __future__ import annotations

import os
import threading
import warnings
import zipfile

import numpy as np
import pytest
from PIL import Image
from tests.data.drawn_files import bomb, drawing, file_of, put
from tests.lost_workers import FAR_ENGINES, deadly

from justright.data.audit import audit, inspect_images
from justright.data.decoding import format_against_suffix, format_of, hide_pillow_warnings, is_cut_off
from justright.data.objects import from_dataset
from justright.data.opening import open_images
from justright.data.quarantine import BadKind
from justright.utils.context import use
from justright.utils.parallel import ENGINES

WHOLE = drawing(0)


def half(kind: str) -> bytes:
    data = file_of(WHOLE, kind)
    return data[: len(data) // 2]


BAD_FILES = {
    "empty.jpg": (b"", BadKind.EMPTY, "the file is empty"),
    "text.jpg": (b"Dear diary, this is no image at all.", BadKind.NOT_AN_IMAGE, "not an image"),
    "cut.jpg": (half("JPEG"), BadKind.TRUNCATED, "truncated"),
    "cut.png": (half("PNG"), BadKind.TRUNCATED, "truncated"),
    "cut.gif": (half("GIF"), BadKind.TRUNCATED, "truncated"),
    "cut.webp": (half("WEBP"), BadKind.TRUNCATED, "shorter than its header states"),
    "header.png": (file_of(WHOLE)[:30], BadKind.TRUNCATED, "starts like PNG"),
    "huge.png": (bomb(12_000), BadKind.TOO_LARGE, "12000 x 12000 pixels, expected at most 100,000,000 pixels"),
    "bomb.png": (bomb(100_000), BadKind.TOO_LARGE, "10000000000 pixels"),
    "zeros.png": (bytes(2000), BadKind.NOT_AN_IMAGE, "not an image"),
    "Ünïcode 名前.jpg": (b"", BadKind.EMPTY, "the file is empty"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_file_is_reported_with_its_kind_and_reason(photos, name):
    content, kind, reason = BAD_FILES[name]
    put(photos / "cat" / name, content)
    (found,) = audit([open_images(photos)]).quarantined
    assert (found.path, found.kind, found.dataset) == (f"cat/{name}", kind, "photos")
    assert reason in found.reason


def test_link_to_nowhere_and_a_folder_in_a_manifest_are_named(photos):
    (photos / "cat" / "gone.jpg").symlink_to("nowhere.jpg")
    (found,) = audit([open_images(photos)]).quarantined
    assert (found.path, found.kind) == ("cat/gone.jpg", BadKind.MISSING)
    (photos / "x.jpg").mkdir()
    (photos / "list.csv").write_text("path\nx.jpg\ncat/0.png\nnot/there.png\n")
    kinds = {image.path: image.kind for image in audit([open_images(photos / "list.csv")]).quarantined}
    assert kinds == {"x.jpg": BadKind.UNREADABLE, "not/there.png": BadKind.MISSING}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_without_permission_is_reported(photos):
    (photos / "cat" / "0.png").chmod(0)
    (found,) = audit([open_images(photos)]).quarantined
    assert (found.kind, "Permission denied" in found.reason) == (BadKind.UNREADABLE, True)


@pytest.mark.parametrize(
    ("name", "content"),
    {
        "cmyk.jpg": file_of(drawing(70).convert("CMYK"), "JPEG"),
        "deep.png": file_of(Image.fromarray((np.arange(64 * 64).reshape(64, 64) * 16).astype(np.uint16))),
        "palette.png": file_of(drawing(71).convert("P"), transparency=3),
        "moving.gif": file_of(drawing(72), "GIF", save_all=True, append_images=[drawing(73), drawing(74)]),
        "one-bit.png": file_of(drawing(75).convert("1")),
        "dot.png": file_of(Image.new("RGB", (1, 1))),
        "thin.png": file_of(Image.new("RGB", (5000, 1), "red")),
    }.items(),
)
def test_unusual_images_are_fine(photos, name, content):
    put(photos / "cat" / name, content)
    assert audit([open_images(photos)]).findings == []


def test_deep_path_is_read(photos):
    folder = "/".join(["n" * 200] * 10)
    put(photos / folder / "1.png", drawing(60))
    put(photos / folder / "2.png", b"")
    assert [image.path for image in audit([open_images(photos)]).quarantined] == [f"{folder}/2.png"]


def test_unexpected_error_is_a_bad_image():
    pictures = [drawing(1), 3.5, drawing(2)]
    report = audit([from_dataset([(picture, 0) for picture in pictures], "toys")])
    (found,) = report.quarantined
    assert (found.path, found.kind) == ("1", BadKind.UNREADABLE)
    assert "DataError: image 1 is a float" in found.reason


def test_damaged_member_of_a_zip_is_reported(tmp_path):
    archive = tmp_path / "pets.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("cat/1.png", file_of(drawing(1)))
        opened.writestr("cat/2.png", file_of(drawing(2)))
    data = bytearray(archive.read_bytes())
    data[120] ^= 255  # inside the first member: its checksum no longer fits
    archive.write_bytes(data)
    (found,) = audit([open_images(archive)]).quarantined
    assert found.path == "cat/1.png"
    assert "pets.zip" in found.reason


def test_each_file_is_read_once(photos, monkeypatch):
    images = open_images(photos)
    (reader,) = images.readers.values()
    read, plainly = [], reader.encoded
    monkeypatch.setattr(reader, "encoded", lambda path: read.append(path) or plainly(path))
    audit([images])
    assert sorted(read) == sorted(images.paths)


@pytest.mark.parametrize("n_workers", [1, 2, 16])
def test_number_of_threads_changes_nothing(photos, n_workers):
    put(photos / "cat" / "empty.jpg", b"")
    images = open_images(photos)
    assert audit([images], images, n_workers=n_workers).to_json() == audit([images], images).to_json()


@pytest.mark.parametrize("name", FAR_ENGINES)
def test_killed_worker_does_not_change_the_report(photos, tmp_path, name):
    put(photos / "cat" / "empty.jpg", b"")
    images = open_images(photos)
    doomed = deadly(images, tmp_path / "marks")
    with ENGINES[name](2) as engine, use(engine=engine):
        report = audit([doomed])
    assert report.to_json() == audit([doomed]).to_json()
    assert sorted(path.name for path in (tmp_path / "marks").iterdir()) == ["decoded", "hashed"], "no worker was killed"


def test_threads_do_not_change_warning_filters(photos):
    hide_pillow_warnings()
    before = list(warnings.filters)
    inspect_images(open_images(photos), n_workers=8)
    assert warnings.filters == before


def test_interruption_leaves_no_thread_behind(photos):
    def interrupted(steps, total, what):
        yield next(iter(steps))
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt), use(progress=interrupted):
        audit([open_images(photos)])
    assert threading.active_count() == before


def test_inspection_has_ids_of_good_and_reasons_of_bad_images(photos):
    put(photos / "cat" / "empty.jpg", b"")
    images = open_images(photos)
    found = inspect_images(images)
    is_empty = [path == "cat/empty.jpg" for path in images.paths]
    named = [None if empty else images.computed_id(row) for row, empty in enumerate(is_empty)]
    assert found["content"].to_pylist() == named
    assert [kind for kind in found["kind"].to_pylist() if kind] == [BadKind.EMPTY.value]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "JPEG2000", "PPM"])
def test_file_is_known_by_its_first_bytes(kind):
    assert format_of(file_of(Image.new("RGB", (8, 8)), kind)) == kind


@pytest.mark.parametrize("data", [b"", b"Dear diary", bytes(100)])
def test_bytes_without_signature_have_no_format(data):
    assert format_of(data) is None


@pytest.mark.parametrize(("name", "found"), [("a.jpg", "PNG"), ("a.PNG", None), ("a", None), ("a.ppm", "PNG")])
def test_only_suffixes_of_another_format_are_wrong(name, found):
    assert format_against_suffix(file_of(Image.new("RGB", (8, 8))), name) == found


def test_text_file_with_image_suffix_has_no_wrong_suffix():
    assert format_against_suffix(b"Dear diary", "a.jpg") is None


def test_webp_shorter_than_its_header_is_cut_off():
    whole = file_of(Image.new("RGB", (64, 64)), "WEBP")
    assert not is_cut_off(whole)
    assert is_cut_off(whole[:-1])
    assert not is_cut_off(file_of(Image.new("RGB", (8, 8)))[:-1])
