from __future__ import annotations

import io
import threading

import pytest
from PIL import Image

from justright.data import open_images
from justright.review.thumbnails import Thumbnails
from justright.utils.errors import BadImageError


def test_a_copy_is_small_and_made_once(make_tree, tmp_path, monkeypatch):
    root = make_tree({"a": 1})
    Image.new("RGB", (900, 300), "red").save(root / "a" / "0.png")
    thumbnails = Thumbnails(open_images(root).with_ids(), tmp_path / "kept")
    data = thumbnails.get(0, 160)
    assert Image.open(io.BytesIO(data)).size == (160, 53)
    monkeypatch.setattr(type(thumbnails.images), "image", None)
    assert thumbnails.get(0, 160) == data


def test_small_image_is_not_enlarged(make_tree, tmp_path):
    thumbnails = Thumbnails(open_images(make_tree({"a": 1})).with_ids(), tmp_path / "kept")
    assert Image.open(io.BytesIO(thumbnails.get(0, 640))).size == (16, 12)


def test_images_without_ids_have_copies_of_their_own(make_tree, tmp_path):
    thumbnails = Thumbnails(open_images(make_tree({"a": 2})), tmp_path / "kept")
    assert thumbnails.get(0, 160) != thumbnails.get(1, 160)


def test_damaged_image_is_an_error_and_an_empty_copy_is_replaced(make_tree, tmp_path):
    root = make_tree({"a": 2})
    images = open_images(root).with_ids()
    thumbnails = Thumbnails(images, tmp_path / "kept")
    data = thumbnails.get(0, 160)
    [file] = (tmp_path / "kept").rglob("*.jpg")
    file.write_bytes(b"")
    assert thumbnails.get(0, 160) == data
    (root / "a" / "1.png").write_bytes(b"no image")
    with pytest.raises(BadImageError):
        thumbnails.get(1, 160)


def test_damaged_or_exchanged_thumbnails_are_recreated(make_tree, tmp_path):
    thumbnails = Thumbnails(open_images(make_tree({"a": 2})).with_ids(), tmp_path / "kept")
    pictures = [thumbnails.get(row, 160) for row in range(2)]
    files = sorted((tmp_path / "kept").rglob("*.jpg"))
    contents = [file.read_bytes() for file in files]
    for damaged in (contents[::-1], [content[:-50] + b"\0" + content[-49:] for content in contents], [b"x", b""]):
        for file, content in zip(files, damaged, strict=True):
            file.write_bytes(content)
        assert [thumbnails.get(row, 160) for row in range(2)] == pictures
        assert [file.read_bytes() for file in files] == contents


def test_threads_can_request_the_same_thumbnail(make_tree, tmp_path):
    thumbnails = Thumbnails(open_images(make_tree({"a": 1})).with_ids(), tmp_path / "kept")
    got: list[bytes] = []
    threads = [threading.Thread(target=lambda: got.append(thumbnails.get(0, 160))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 16
    assert len(set(got)) == 1
    assert len(list((tmp_path / "kept").rglob("*"))) == 2  # a folder and one file, nothing half-written


def test_replaced_file_is_not_shown(make_tree, tmp_path):
    root = make_tree({"a": 3})
    images = open_images(root).with_content()
    thumbnails = Thumbnails(images, tmp_path / "kept")
    kept = thumbnails.get(0, 160)
    Image.new("RGB", (20, 20), "red").save(root / "a" / "0.png")
    Image.new("RGB", (20, 20), "red").save(root / "a" / "1.png")
    assert thumbnails.get(0, 160) == kept  # a copy of the image that the run saw
    for row, size in ((0, 640), (1, 160)):
        with pytest.raises(BadImageError, match=rf"a/{row}\.png: the file was changed or replaced since the run"):
            thumbnails.get(row, size)


def test_link_to_a_text_file_is_not_shown(make_tree, tmp_path):
    root = make_tree({"a": 1})
    (tmp_path / "secret.txt").write_text("password")
    for images in (open_images(root), open_images(root).with_ids(), open_images(root).with_content()):
        (root / "a" / "0.png").unlink()
        (root / "a" / "0.png").symlink_to(tmp_path / "secret.txt")
        with pytest.raises(BadImageError) as error:
            Thumbnails(images, tmp_path / "kept").get(0, 160)
        assert "password" not in str(error.value)
