from __future__ import annotations

import io
import json
import os
import struct
import threading
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageEnhance

from justright.audit.audit import audit, ignored_files
from justright.audit.duplicates import COLOR_TOLERANCE, HASH_BITS, groups_of, look_of, near_components
from justright.audit.findings import AuditReport, Finding, location
from justright.audit.inspection import check_images, inspect_images
from justright.audit.quarantine import BadKind, TooManyBadError, reason_of
from justright.data.class_names import comparable_name
from justright.data.objects import from_dataset
from justright.data.opening import open_images
from justright.errors import BadImageError, DataError, JustrightError


def drawing(seed: int, size: int = 96) -> Image.Image:
    """Ellipses and boxes on a colored ground; another seed gives another composition."""
    rng = np.random.default_rng(seed)
    image = Image.new("RGB", (size, size), tuple(rng.integers(60, 190, 3).tolist()))
    pen = ImageDraw.Draw(image)
    for shape in (pen.ellipse, pen.rectangle) * 4:
        x, y = rng.uniform(0, 0.8, 2) * size
        width, height = rng.uniform(0.1, 0.5, 2) * size
        shape((x, y, x + width, y + height), fill=tuple(rng.integers(0, 256, 3).tolist()))
    return image


def file_of(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def bomb(side: int) -> bytes:
    """A PNG of a few bytes whose header promises gigapixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


def put(file: Path, content: bytes | Image.Image) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else file_of(content))
    return file


def of_kind(report: AuditReport, kind: str) -> list[Finding]:
    return [finding for finding in report.findings if finding.kind == kind]


def paths(finding: Finding) -> set[str]:
    return {image.path for image in finding.images}


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes of three clean images."""
    for seed in range(6):
        put(tmp_path / "photos" / ("cat", "dog")[seed % 2] / f"{seed}.png", drawing(seed))
    return tmp_path / "photos"


# ---- one file at a time


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
    "cut.webp": (half("WEBP"), BadKind.TRUNCATED, "shorter than its header says"),
    "header.png": (file_of(WHOLE)[:30], BadKind.TRUNCATED, "begins like PNG"),
    "huge.png": (bomb(12_000), BadKind.TOO_LARGE, "12000 x 12000 pixels, expected at most 100,000,000 pixels"),
    "bomb.png": (bomb(100_000), BadKind.TOO_LARGE, "10000000000 pixels"),
    "zeros.png": (bytes(2000), BadKind.NOT_AN_IMAGE, "not an image"),
    "Ünïcode 名前.jpg": (b"", BadKind.EMPTY, "the file is empty"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_named_with_its_kind_and_reason(photos, name):
    content, kind, reason = BAD_FILES[name]
    put(photos / "cat" / name, content)
    (found,) = audit([open_images(photos)]).quarantined
    assert (found.path, found.kind, found.dataset) == (f"cat/{name}", kind, "photos")
    assert reason in found.reason


def test_a_link_to_nowhere_and_a_folder_in_a_manifest_are_named(photos):
    (photos / "cat" / "gone.jpg").symlink_to("nowhere.jpg")
    (found,) = audit([open_images(photos)]).quarantined
    assert (found.path, found.kind) == ("cat/gone.jpg", BadKind.MISSING)
    (photos / "x.jpg").mkdir()
    (photos / "list.csv").write_text("path\nx.jpg\ncat/0.png\nnot/there.png\n")
    kinds = {image.path: image.kind for image in audit([open_images(photos / "list.csv")]).quarantined}
    assert kinds == {"x.jpg": BadKind.UNREADABLE, "not/there.png": BadKind.MISSING}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(photos):
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


def test_a_deep_path_is_read(photos):
    folder = "/".join(["n" * 200] * 10)
    put(photos / folder / "1.png", drawing(60))
    put(photos / folder / "2.png", b"")
    assert [image.path for image in audit([open_images(photos)]).quarantined] == [f"{folder}/2.png"]


def test_a_failure_nobody_foresaw_does_not_end_the_work():
    pictures = [drawing(1), "no picture", drawing(2)]
    report = audit([from_dataset([(picture, 0) for picture in pictures], "toys")])
    (found,) = report.quarantined
    assert (found.path, found.kind) == ("1", BadKind.UNREADABLE)
    assert "DataError: image 1 is a str" in found.reason


def test_a_word_in_a_path_does_not_decide_the_kind():
    assert reason_of(BadImageError("truncated/x.jpg: the file is empty"), "truncated/x.jpg")[0] is BadKind.EMPTY


def test_a_damaged_member_of_a_zip_is_named(tmp_path):
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
def test_the_number_of_threads_changes_nothing(photos, n_workers):
    put(photos / "cat" / "empty.jpg", b"")
    images = open_images(photos)
    assert audit([images], images, n_workers=n_workers).to_json() == audit([images], images).to_json()


def test_threads_leave_the_warning_filters_as_they_were(photos):
    before = list(warnings.filters)
    inspect_images(open_images(photos), n_workers=8)
    assert warnings.filters == before


def test_an_interruption_leaves_no_thread_behind(photos):
    def interrupted(steps, total, what):
        yield next(iter(steps))
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        audit([open_images(photos)], track=interrupted)
    assert threading.active_count() == before


# ---- the limit, and what later stages use


def test_good_images_go_on_with_ids_and_bad_ones_are_kept_aside(photos):
    put(photos / "cat" / "empty.jpg", b"")
    images = open_images(photos)
    good, bad = check_images(images, max_bad=0.5)
    assert good.paths == [path for path in images.paths if path != "cat/empty.jpg"]
    assert good.ids == [good.content_id(row) for row in range(len(good))]
    assert [(image.path, image.kind) for image in bad] == [("cat/empty.jpg", BadKind.EMPTY)]


def test_an_id_that_a_table_has_stays(photos):
    (photos / "list.csv").write_text("path,id\ncat/0.png,mine\ndog/1.png,\n")
    good, _ = check_images(open_images(photos / "list.csv"))
    assert good.ids[0] == "mine"
    assert good.ids[1] == good.take([1]).readers[good.table["source"][1].as_py()].content_id("dog/1.png")


def test_a_share_above_the_limit_is_refused_with_share_limit_and_examples(photos):
    for number in range(4):
        put(photos / "cat" / f"empty{number}.jpg", b"")
    images = open_images(photos)
    with pytest.raises(TooManyBadError) as refusal:
        check_images(images, max_bad=0.25)
    for part in ("4 of 10", "photos", "40.0%", "25.0%", "cat/empty0.jpg: the file is empty", "1 more", "--max-bad"):
        assert part in str(refusal.value)
    assert isinstance(refusal.value, JustrightError)
    check_images(images, max_bad=0.4)  # the limit itself is allowed
    report = audit([images])
    report.refuse_above(0.4)
    with pytest.raises(TooManyBadError):
        report.refuse_above(0.39)


# ---- copies


CHANGES: dict[str, Callable[[Image.Image], bytes]] = {
    "re-encoded": lambda image: file_of(image, "JPEG", quality=60),
    "half": lambda image: file_of(image.resize((48, 48))),
    "larger": lambda image: file_of(image.resize((250, 250))),
    "brighter": lambda image: file_of(ImageEnhance.Brightness(image).enhance(1.08)),
    "darker": lambda image: file_of(ImageEnhance.Brightness(image).enhance(0.9)),
    "turned by EXIF": lambda image: file_of(image.rotate(90), "JPEG", quality=95, exif=turned()),
}


def turned() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6  # a viewer turns it a quarter clockwise
    return exif


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("seed", range(100, 104))
def test_a_changed_copy_is_found(photos, change, seed):
    put(photos / "cat" / "original.png", drawing(seed))
    put(photos / "cat" / "copy.png", CHANGES[change](drawing(seed)))
    (found,) = of_kind(audit([open_images(photos)]), "copies_near")
    assert paths(found) == {"cat/original.png", "cat/copy.png"}


def test_different_images_are_not_copies(tmp_path):
    for seed in range(300):
        put(tmp_path / "all" / f"{seed}.png", drawing(seed, 48))
    assert audit([open_images(tmp_path / "all")]).findings == []


def test_color_tells_images_of_one_shape_apart():
    red, blue = Image.new("RGB", (64, 64), "white"), Image.new("RGB", (64, 64), "white")
    ImageDraw.Draw(red).ellipse((10, 10, 50, 54), fill=(200, 60, 0))
    ImageDraw.Draw(blue).ellipse((10, 10, 50, 54), fill=(0, 60, 200))
    hashes, colors = zip(*(look_of(image) for image in (red, blue)), strict=True)
    alike = near_components(np.array(hashes, np.uint64), np.array(colors), 10)
    assert alike[0] != alike[1]


def test_exact_copies_are_one_group_across_a_zip_and_a_folder(photos, tmp_path):
    with zipfile.ZipFile(tmp_path / "more.zip", "w") as opened:
        opened.writestr("cat/again.png", (photos / "cat" / "0.png").read_bytes())
        opened.writestr("cat/other.png", file_of(drawing(50)))
    report = audit([open_images(photos), open_images(tmp_path / "more.zip")])
    (found,) = of_kind(report, "copies_exact")
    assert paths(found) == {"cat/0.png", "cat/again.png"}
    assert not found.is_problem
    assert report.n_problems == 0


def test_a_copy_in_pool_and_target_is_a_problem(photos, tmp_path):
    put(tmp_path / "new" / "same.png", drawing(0))
    put(tmp_path / "new" / "alike.jpg", file_of(drawing(1), "JPEG"))
    put(tmp_path / "new" / "fresh.png", drawing(50))
    report = audit([open_images(photos)], open_images(tmp_path / "new"))
    (exact,), (near,) = of_kind(report, "shared_exact"), of_kind(report, "shared_near")
    assert paths(exact) == {"cat/0.png", "same.png"}
    assert paths(near) == {"dog/1.png", "alike.jpg"}
    assert report.n_problems == 2


def test_the_same_image_under_two_classes_is_a_conflict(photos):
    put(photos / "dog" / "same.png", drawing(0))
    put(photos / "cat" / "alike.jpg", file_of(drawing(1), "JPEG"))
    report = audit([open_images(photos)])
    (exact,), (near,) = of_kind(report, "conflict_exact"), of_kind(report, "conflict_near")
    assert paths(exact) == {"cat/0.png", "dog/same.png"}
    assert paths(near) == {"dog/1.png", "cat/alike.jpg"}
    assert "cat, dog" in exact.reason
    assert of_kind(report, "copies_exact") == of_kind(report, "copies_near") == []


def test_one_class_spelled_in_two_ways_is_no_conflict_and_no_class_none_either(photos, tmp_path):
    put(tmp_path / "more" / "007.Cat" / "1.png", drawing(0))
    put(tmp_path / "more" / "007.Cat" / "2.png", drawing(50))
    put(tmp_path / "loose" / "1.png", drawing(0))
    report = audit([open_images(photos), open_images(tmp_path / "more"), open_images(tmp_path / "loose")])
    assert report.n_problems == 0
    put(tmp_path / "more" / "Lynx" / "1.png", drawing(0))
    report = audit([open_images(photos), open_images(tmp_path / "more")])
    assert len(of_kind(report, "conflict_exact")) == 1


def test_blank_images_are_no_near_copies_of_each_other(photos):
    for level in range(40):
        put(photos / "cat" / f"blank{level}.png", Image.new("RGB", (40 + level, 30), (level * 6,) * 3))
    assert audit([open_images(photos)]).findings == []


def test_a_chain_of_near_copies_is_one_group():
    hashes = np.array([0b0, 0b11, 0b1111, 0b111111, 2**40 - 1], np.uint64)
    alike = near_components(hashes, np.full((5, 3), 333), near=2)
    assert [group.tolist() for group in groups_of(alike)] == [[0, 1, 2, 3]]


def by_brute_force(hashes: list[int], colors: list[tuple[int, int, int]], near: int) -> list[set[int]]:
    """Groups of near copies, every pair compared."""
    groups = [{number} for number in range(len(hashes))]
    for a in range(len(hashes)):
        for b in range(a):
            is_near = (hashes[a] ^ hashes[b]).bit_count() <= near
            if is_near and max(abs(x - y) for x, y in zip(colors[a], colors[b], strict=True)) <= COLOR_TOLERANCE:
                one, other = (next(group for group in groups if number in group) for number in (a, b))
                if one is not other:
                    groups.remove(other)
                    one |= other
    return [group for group in groups if len(group) > 1]


@st.composite
def crowded_hashes(draw: st.DrawFn) -> list[int]:
    """Hashes that lie close to a few centers."""
    centers = draw(st.lists(st.integers(0, 2**HASH_BITS - 1), min_size=1, max_size=3))
    bits = st.lists(st.integers(0, HASH_BITS - 1), max_size=8)
    members = draw(st.lists(st.tuples(st.sampled_from(centers), bits), max_size=40))
    return [center ^ sum(1 << bit for bit in set(flipped)) for center, flipped in members]


@settings(max_examples=150, deadline=None)
@given(crowded_hashes(), st.integers(0, 10), st.randoms(use_true_random=False))
def test_the_near_search_agrees_with_comparing_every_pair(hashes, near, random):
    colors = [tuple(random.choice((300, 310, 320, 400)) for _ in range(3)) for _ in hashes]
    found = near_components(np.array(hashes, np.uint64), np.array(colors, np.int64).reshape(-1, 3), near)
    groups = sorted(set(group.tolist()) for group in groups_of(found))
    assert sorted(map(sorted, groups)) == sorted(map(sorted, by_brute_force(hashes, colors, near)))


def test_many_images_of_one_look_are_one_group_at_once():
    hashes = np.full(200_000, 12345, np.uint64)
    (group,) = groups_of(near_components(hashes, np.full((200_000, 3), 333)))
    assert len(group) == 200_000


def test_a_search_too_wide_is_refused():
    with pytest.raises(DataError, match="0 to 10"):
        near_components(np.zeros(2, np.uint64), np.zeros((2, 3), int), 11)


# ---- classes and names


@pytest.mark.parametrize(
    ("left", "right", "is_same"),
    [
        ("001.Black_footed_Albatross", "black footed albatross", True),
        ("birds/gulls/Herring_Gull", "herring-gull", True),
        ("12 Cat", "CAT", True),
        ("Cafe\u0301", "caf\u00e9", True),
        ("cat", "dog", False),
        ("7up", "up", False),
    ],
)
def test_names_are_compared_as_a_person_would(left, right, is_same):
    assert (comparable_name(left) == comparable_name(right)) is is_same


@pytest.mark.parametrize("name", ["7", "007", "12/7", "", "_"])
def test_a_mere_number_is_not_compared(name):
    assert comparable_name(name) is None


def test_a_class_name_in_pool_and_target_is_a_remark(photos, tmp_path):
    for number in range(2):
        put(tmp_path / "new" / "003.Cat" / f"{number}.png", drawing(50 + number))
        put(tmp_path / "new" / "fox" / f"{number}.png", drawing(60 + number))
    report = audit([open_images(photos)], open_images(tmp_path / "new"))
    (found,) = report.findings
    assert (found.kind, found.is_problem) == ("shared_class", False)
    assert [(each.side, each.dataset, each.class_name) for each in found.classes] == [
        ("pool", "photos", "cat"),
        ("target", "new", "003.Cat"),
    ]


def test_a_class_of_one_image_is_a_remark_and_the_bad_ones_are_counted(photos):
    put(photos / "lynx" / "1.png", drawing(50))
    put(photos / "puma" / "1.png", b"")
    found = of_kind(audit([open_images(photos)]), "small_class")
    reasons = {finding.classes[0].class_name: finding.reason for finding in found}
    assert reasons == {"lynx": "1 image", "puma": "0 images, 1 bad"}


def test_a_wrong_ending_is_a_remark(photos):
    put(photos / "cat" / "really.jpg", drawing(50))
    (found,) = audit([open_images(photos)]).findings
    assert (found.kind, found.reason, paths(found)) == ("wrong_suffix", "holds PNG", {"cat/really.jpg"})


def test_files_that_are_no_images_by_name_are_listed(photos):
    put(photos / "cat" / "notes.txt", b"hello")
    put(photos / ".hidden", b"")
    ignored = ignored_files(photos, "pool")
    assert [(place.dataset, place.path) for place in ignored] == [("photos", "cat/notes.txt")]
    report = audit([open_images(photos)], ignored=ignored)
    assert location(ignored[0].source, ignored[0].path) == str(photos / "cat" / "notes.txt")
    assert (len(of_kind(report, "ignored_file")), report.n_problems) == (1, 0)


def test_the_report_is_plain_json_with_every_bad_image(photos):
    put(photos / "cat" / "empty.jpg", b"")
    value = json.loads(json.dumps(audit([open_images(photos)]).to_json()))
    assert (value["n_images"], value["n_problems"], value["counts"]["bad_file"]) == (7, 1, 1)
    (bad,) = value["sources"][0]["quarantined"]
    assert bad == {
        "dataset": "photos",
        "source": f"folder:{photos}",
        "path": "cat/empty.jpg",
        "kind": "empty",
        "reason": "the file is empty",
    }


def test_a_set_without_images_has_nothing_wrong(tmp_path):
    (tmp_path / "none.csv").write_text("path,label\n")
    assert audit([open_images(tmp_path / "none.csv")]).findings == []
    assert audit([]).findings == []


def test_real_photos_of_ten_kinds_are_clean(real_data):
    report = audit([open_images(real_data / "cifar10.zip")], open_images(real_data / "clothing10.zip"))
    assert report.n_problems == 0
    assert report.n_images == 1600
