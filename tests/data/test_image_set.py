"""ImageSet: labels, classes, ids, content, saving and sending to workers."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from justright.data import ImageSet, glyph_set, image_set, open_archive, open_folder, open_images
from justright.data.image_set import SENT, row_ranges, sent
from justright.utils.errors import BadImageError, DataError
from justright.utils.types import UNLABELED


def test_equal_content_has_equal_ids(make_tree, tmp_path):
    root = make_tree({"cats": 2})
    archive = tmp_path / "photos.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.write(root / "cats" / "0.png", "c/0.png")
    in_folder, in_zip = open_folder(root).with_ids(), open_archive(archive).with_ids()
    assert in_zip.ids[0] == in_folder.ids[0] != in_folder.ids[1]


def test_ids_do_not_depend_on_threads(make_tree, monkeypatch):
    root = make_tree({"cats": 9})
    monkeypatch.setattr(image_set, "HASHED_AT_ONCE", 2)
    in_threads = open_folder(root).with_ids().ids
    monkeypatch.setattr(image_set, "HASHED_AT_ONCE", 64)
    assert open_folder(root).with_ids().ids == in_threads


def test_missing_ids_error_names_with_ids(make_tree):
    with pytest.raises(DataError, match="with_ids"):
        _ = open_folder(make_tree({"cats": 1})).ids


@pytest.mark.parametrize("ids_first", [False, True])
def test_saved_set_loads_unchanged_after_a_move(make_tree, tmp_path, ids_first):
    root = make_tree({"a/b": 2, "c": 1})
    images = open_folder(root).with_ids() if ids_first else open_folder(root)
    images.save(root / "sub" / "set.parquet")
    moved = tmp_path / "moved"
    root.rename(moved)
    again = open_images(moved / "sub" / "set.parquet")
    assert again.paths == images.paths
    assert again.labels.tolist() == images.labels.tolist()
    assert again.hierarchy == images.hierarchy
    assert [again.image(i).tobytes() for i in range(3)] == [open_folder(moved).image(i).tobytes() for i in range(3)]
    assert (again.ids == images.ids) if ids_first else again.table["id"].null_count == 3


def test_killed_save_leaves_the_old_file(make_tree, tmp_path, monkeypatch):
    images, out = open_folder(make_tree({"a": 1})), tmp_path / "set.parquet"
    images.save(out)
    before = out.read_bytes()

    def fail(table, where, **options):
        Path(where).write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(OSError, match="disk full"):
        images.save(out)
    assert out.read_bytes() == before
    assert list(tmp_path.glob(".*tmp")) == []


def test_take_keeps_the_given_order(make_tree):
    images = open_folder(make_tree({"a": 2, "b": 2}))
    assert images.take([3, 0]).paths == ["b/1.png", "a/0.png"]
    assert images.of_classes([1]).paths == ["b/0.png", "b/1.png"]


def test_without_labels_drops_every_class_column(make_tree):
    bare = open_folder(make_tree({"super/a": 2, "super/b": 2})).without_labels()
    assert set(bare.labels.tolist()) == {UNLABELED}
    assert bare.classes == {}
    assert bare.table["class_name"].null_count == 4
    assert not any(name.startswith("superclass") for name in bare.table.column_names)


def test_set_can_be_pickled(make_tree, tmp_path):
    root = make_tree({"a": 1})
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as opened:
        opened.write(root / "a" / "0.png", "a/0.png")
    for images in (open_folder(root), open_archive(tmp_path / "z.zip")):
        images.image(0)  # so that handles are open when it is pickled
        again = pickle.loads(pickle.dumps(images))
        assert again.image(0).tobytes() == images.image(0).tobytes()


def test_concat_of_sets_with_other_columns_fills_the_gaps(make_tree):
    flat, deep = open_folder(make_tree({"a": 1})), open_folder(make_tree({"x/y": 1}, name="deep"))
    both = ImageSet.concat([flat, deep])
    assert both.paths == ["a/0.png", "x/y/0.png"]
    assert both.table["superclass"].to_pylist() == [None, "x"]
    assert [both.image(i).size for i in (0, 1)] == [(16, 12), (16, 12)]


def test_labels_are_read_only(make_tree):
    with pytest.raises(ValueError, match="read-only"):
        open_folder(make_tree({"a": 1})).labels[0] = 7


def test_content_ids_ignore_the_ids_of_the_table(make_tree):
    root = make_tree({"a": 3})
    images = open_folder(root)
    plain = images.with_ids()
    claimed = images.named_by(["0", "1", "2"])
    assert claimed.ids == ["0", "1", "2"]
    assert claimed.content_ids() == images.content_ids() == plain.ids
    assert claimed.with_ids().ids == claimed.ids
    (root / "a" / "1.png").unlink()
    gone = ImageSet(claimed.table, claimed.readers)  # nothing cached
    with pytest.raises(BadImageError):
        gone.content_ids()
    assert gone.content_ids(is_strict=False) == [plain.ids[0], "", plain.ids[2]]


def test_content_is_hashed_once_for_a_set_and_its_subsets(make_tree, monkeypatch):
    root = make_tree({"a": 3})
    images = open_folder(root)
    ids = images.content_ids()
    monkeypatch.setattr(ImageSet, "computed_id", None)
    assert images.content_ids() == ids
    assert images.take([2, 0]).content_ids() == [ids[2], ids[0]]
    assert images.named("b").without_labels().named_by(["x", "y", "z"]).content_ids() == ids
    assert ImageSet.concat([images, images.take([1])]).content_ids() == [*ids, ids[1]]
    assert images.with_ids().ids == ids


def test_fresh_content_sees_changed_files(make_tree):
    root = make_tree({"a": 2})
    images = open_folder(root)
    ids = images.content_ids()
    (root / "a" / "0.png").write_bytes((root / "a" / "1.png").read_bytes())
    assert images.content_ids() == ids
    assert images.content_column(is_fresh=True).to_pylist() == [ids[1], ids[1]]
    assert images.content_ids() == [ids[1], ids[1]]


def test_content_column_fills_missing_ids(make_tree):
    images = open_folder(make_tree({"cats": 5}))
    column = images.content_column()
    assert column.to_pylist() == images.content_ids()
    partly = images.named_by(pa.chunked_array([[None, "b", None, "d", None]], pa.string()))
    ids = images.content_ids()
    assert partly.with_ids().ids == [ids[0], "b", ids[2], "d", ids[4]]


def test_set_with_content_rejects_and_lists_changed_files(make_tree):
    root = make_tree({"a": 4})
    images = open_images(root).with_content()
    assert images.changed() == []
    assert images.image(0).tobytes() == open_images(root).image(0).tobytes()
    (root / "a" / "1.png").write_bytes((root / "a" / "2.png").read_bytes())
    (root / "a" / "3.png").unlink()
    assert images.changed() == [
        "a/1.png: the file was changed or replaced since the run",
        "a/3.png: missing or unreadable",
    ]
    for read in (images.image, images.encoded):
        with pytest.raises(BadImageError, match=r"a/1\.png: the file was changed"):
            read(1)
    assert images.take([0, 2]).changed() == []


def test_drawn_images_cannot_change():
    images = glyph_set(1, ["greek"]).with_content()
    assert images.known_content(0) == images.content_ids()[0]
    assert images.changed() == []


LETTERS = open_images("glyphs:scripts=hebrew,per_class=4")


def test_part_gives_the_images_of_its_rows():
    rows = np.array([3, 4, 40])
    part = ImageSet(sent(LETTERS, rows), LETTERS.readers)
    assert part.paths == [LETTERS.paths[row] for row in rows]
    assert [part.image(slot).tobytes() for slot in range(3)] == [LETTERS.image(int(row)).tobytes() for row in rows]


def test_sent_parts_are_small_and_have_no_labels():
    many = ImageSet.concat([LETTERS] * 50)
    part = sent(many, range(1000, 1016))
    assert part.column_names == list(SENT)
    assert len(pickle.dumps(part)) < 10_000


def test_parts_cover_the_set_in_order():
    parts = [sent(LETTERS, rows) for rows in row_ranges(len(LETTERS), 30)]
    assert [part.num_rows for part in parts] == [30, 30, 28]
    assert [path for part in parts for path in part["path"].to_pylist()] == LETTERS.paths
    assert sent(LETTERS, np.array([], int)).num_rows == 0
