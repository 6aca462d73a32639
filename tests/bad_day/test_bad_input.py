"""Malformed input is read correctly or raises a JustrightError."""

from __future__ import annotations

import io
import os
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image, ImageOps
from tests.conftest import picture

from justright.data import from_dataset, open_images, read_class_split
from justright.data.audit import ignored_files
from justright.data.decoding import decode
from justright.data.splits import random_half
from justright.features.cache import FeatureCache
from justright.runs.run_folder import RunFolder
from justright.utils.errors import BadImageError, DataError

WREN = ["a.png", "b.png"]
PLAIN = ("path", "label", "class_name", "dataset", "id", "split", "superclass")
NESTED = {
    "list": pa.array([[1], [2]]),
    "struct": pa.array([{"a": 1}, {"a": 2}]),
    "map": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int32())),
    "binary": pa.array([b"a", b"\xff"]),
}


def table(folder: Path, **columns: object) -> Path:
    pq.write_table(pa.table({"path": WREN} | columns), folder / "table.parquet")
    return folder / "table.parquet"


def csv(folder: Path, text: bytes) -> Path:
    (folder / "table.csv").write_bytes(text)
    return folder / "table.csv"


def encoded(form: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    picture(0, (32, 24)).save(buffer, form, **options)
    return buffer.getvalue()


def folders_that_link_each_other(root: Path, n: int) -> Path:
    for own in range(n):
        (root / f"class{own}").mkdir(parents=True)
        (root / f"class{own}" / "image.png").write_bytes(encoded("PNG"))
        for other in range(n):
            if other != own:
                (root / f"class{own}" / f"link{other}").symlink_to(root / f"class{other}", target_is_directory=True)
    return root


def test_cyclic_links_raise(tmp_path):
    root = folders_that_link_each_other(tmp_path / "photos", 12)
    with pytest.raises(DataError, match=r"lead to .*class\d+ in more than 100 ways"):
        open_images(root)
    with pytest.raises(DataError, match="more than 100 ways"):
        ignored_files(root, "pool")


def test_exponential_links_raise(tmp_path):
    root = tmp_path / "photos"
    for step in range(40):
        (root / f"step{step}").mkdir(parents=True)
        (root / f"step{step}" / "image.png").write_bytes(encoded("PNG"))
    for step in range(39):
        for name in ("one", "other"):
            (root / f"step{step}" / name).symlink_to(root / f"step{step + 1}", target_is_directory=True)
    with pytest.raises(DataError, match="ways"):
        open_images(root)


def test_several_links_to_one_folder_are_allowed(tmp_path):
    root = tmp_path / "episodes"
    (tmp_path / "wren").mkdir()
    (tmp_path / "wren" / "image.png").write_bytes(encoded("PNG"))
    for episode in range(150):
        (root / f"{episode:03}").mkdir(parents=True)
        (root / f"{episode:03}" / "wren").symlink_to(tmp_path / "wren", target_is_directory=True)
    assert len(open_images(root)) == 150


def test_link_to_itself_is_an_unreadable_image(make_tree):
    root = make_tree({"wren": 1})
    (root / "wren" / "self.png").symlink_to(root / "wren" / "self.png")
    images = open_images(root)
    assert images.paths == ["wren/0.png", "wren/self.png"]
    with pytest.raises(BadImageError, match="cannot be read"):
        images.image(1)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read every folder")
def test_folder_without_permission_is_named(make_tree):
    root = make_tree({"wren": 1, "crow": 1})
    (root / "crow").chmod(0)
    try:
        with pytest.raises(DataError, match="crow cannot be read: Permission denied"):
            open_images(root)
    finally:
        (root / "crow").chmod(0o700)


@pytest.mark.parametrize("column", ["path", "label", "class_name", "dataset", "id", "split", "superclass", "source"])
def test_duplicate_columns_raise(tmp_path, column):
    header = "path,path,label" if column == "path" else f"path,{column},{column}"
    file = csv(tmp_path, f"{header}\na.png,1,2\n".encode())
    with pytest.raises(DataError, match=f"2 columns named {column}"):
        open_images(file)


def test_duplicate_unused_columns_are_allowed(tmp_path):
    assert open_images(csv(tmp_path, b"path,note,note\na.png,x,y\n")).paths == ["a.png"]


@pytest.mark.parametrize("label", ["2147483648", "9223372036854775807", "9223372036854775813", "1e30", "-2"])
def test_labels_out_of_range_raise(tmp_path, label):
    with pytest.raises(DataError, match=f"label {label}") as refused:
        open_images(csv(tmp_path, f"path,label\na.png,1\nb.png,{label}\n".encode()))
    assert "2,147,483,647" in refused.value.expected


def test_unsigned_labels_above_2_to_the_63_raise(tmp_path):
    with pytest.raises(DataError, match="label 9223372036854775813 in row 3"):
        open_images(table(tmp_path, label=pa.array([1, 2**63 + 5], pa.uint64())))


def test_largest_label_is_read(tmp_path):
    assert open_images(table(tmp_path, label=[0, 2**31 - 1])).labels.tolist() == [0, 2**31 - 1]


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), 1.5])
def test_fractional_labels_raise(tmp_path, wrong):
    with pytest.raises(DataError, match=f"label {wrong} in row 3"):
        open_images(table(tmp_path, label=pa.array([1.0, wrong])))
    with pytest.raises(DataError, match=f"label {wrong} in row 3"):
        open_images(csv(tmp_path, f"path,label\na.png,1\nb.png,{wrong}\n".encode()))


def test_float_labels_with_missing_values_are_read(tmp_path):
    images = open_images(csv(tmp_path, b"path,label\na.png,10.0\nb.png,\nc.png,2.0\n"))
    assert images.labels.tolist() == [10, -1, 2]
    assert images.classes == {2: "2", 10: "10"}
    assert open_images(table(tmp_path, label=pa.array([10.0, None]))).labels.tolist() == [10, -1]


def test_a_class_may_be_called_nan(tmp_path):
    assert open_images(csv(tmp_path, b"path,label\na.png,nan\nb.png,pita\n")).classes == {0: "nan", 1: "pita"}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("column", PLAIN)
def test_nested_and_binary_columns_raise(tmp_path, column, kind):
    with pytest.raises(DataError, match=f"column {column} holds {kind}"):
        open_images(table(tmp_path, **{column: NESTED[kind]}))


def test_text_that_is_not_utf8_raises(tmp_path):
    for text in (b"path,label\na.png,\xff\n", b"path,\xff\na.png,1\n"):
        with pytest.raises(DataError, match="cannot be read"):
            open_images(csv(tmp_path, text))


def test_path_with_a_zero_byte_raises(tmp_path):
    with pytest.raises(DataError, match="row 2 has no readable"):
        open_images(csv(tmp_path, b"path\na\0.png\n"))


def test_source_column_may_be_plain_text(make_tree):
    root = make_tree({"wren": 1})
    file = root / "table.parquet"
    pq.write_table(pa.table({"path": ["wren/0.png"], "source": ["folder:."]}), file)
    images = open_images(file)
    assert images.image(0).size == (16, 12)
    assert images.datasets == ["table"]
    assert images.labels.tolist() == [-1]


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"source": [None, "folder:."]}, "a row has no source"),
        ({"source": [1, 2]}, "names the source '1'"),
        ({"source": ["http://x", "folder:."]}, "names the source 'http://x'"),
        ({"source": ["folder:a\0b", "folder:."]}, "names the source"),
        ({"source": ["glyphs:seed=1,size=99999999999", "folder:."]}, "names the source"),
        ({"source": ["folder:."] * 2, "label": [1, -5]}, "label -5"),
        ({"source": ["folder:."] * 2, "label": [1.0, float("nan")]}, "label nan"),
        ({"path": ["0", "1"], "source": ["bytes"] * 2, "bytes": [1, 2]}, "in it cannot be read"),
    ],
)
def test_foreign_saved_set_raises(tmp_path, columns, complaint):
    with pytest.raises(DataError, match=complaint):
        open_images(table(tmp_path, **columns))


def labeled_zip(folder: Path) -> bytearray:
    with zipfile.ZipFile(folder / "birds.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", encoded("PNG"))
        archive.writestr("labels.csv", "path,label\n" + "a.png,1\n" * 50)
    assert open_images(folder / "birds.zip").classes == {1: "1"}
    return bytearray((folder / "birds.zip").read_bytes())


def places(data: bytearray, mark: bytes) -> list[int]:
    return [place for place in range(len(data)) if data.startswith(mark, place)]


def refused_zip(folder: Path, data: bytearray) -> str:
    (folder / "birds.zip").write_bytes(data)
    with pytest.raises(DataError, match=r"labels.csv in .* cannot be read") as refused:
        open_images(folder / "birds.zip")
    return str(refused.value)


def test_encrypted_table_in_a_zip_is_named(tmp_path):
    data = labeled_zip(tmp_path)
    for place in places(data, b"PK\x03\x04"):
        data[place + 6] |= 1
    for place in places(data, b"PK\x01\x02"):
        data[place + 8] |= 1
    assert "encrypted" in refused_zip(tmp_path, data)


def test_damaged_table_in_a_zip_is_named(tmp_path):
    data = labeled_zip(tmp_path)
    start = places(data, b"labels.csv")[0] + len("labels.csv")
    for place in range(start, start + 8):
        broken = bytearray(data)
        broken[place] ^= 0xFF
        refused_zip(tmp_path, broken)


def test_unknown_compression_in_a_zip_is_named(tmp_path):
    data = labeled_zip(tmp_path)
    for place in places(data, b"PK\x01\x02"):
        data[place + 10] = 99
    refused_zip(tmp_path, data)


def test_damaged_images_raise_bad_image_error():
    exif = Image.Exif()
    exif[274], exif[315], exif[33432] = 6, "x" * 30, "me"
    outcomes = {True: 0, False: 0}
    for form in ("AVIF", "JPEG", "PNG", "WEBP", "TIFF"):
        data, draw = encoded(form, exif=exif), np.random.default_rng(0)
        for _ in range(150):
            damaged = bytearray(data)
            for place in draw.integers(0, len(data), draw.integers(1, 6)):
                damaged[place] = draw.integers(256)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    decode(bytes(damaged))
                    outcomes[True] += 1
                except BadImageError:
                    outcomes[False] += 1
    assert min(outcomes.values()) > 100


def test_odd_metadata_is_ignored():
    exif = Image.Exif()
    exif[274], exif[315] = 6, "x" * 30
    data = bytearray(encoded("JPEG", exif=exif))
    order = "little" if b"II*\0" in data else "big"
    (place,) = places(data, (315).to_bytes(2, order) + (2).to_bytes(2, order))
    data[place : place + 2] = (256).to_bytes(2, order)  # the artist's name becomes the image's width
    with pytest.raises(struct.error), Image.open(io.BytesIO(data)) as image:
        ImageOps.exif_transpose(image)
    turned = decode(bytes(data))
    assert turned.size == (24, 32)
    assert "exif" not in turned.info, "or it would be turned a second time"


def run_with(folder: Path, name: str, data: bytes) -> RunFolder:
    RunFolder(folder).save_about({})
    (folder / name).write_bytes(data)
    return RunFolder(folder)


@pytest.mark.parametrize("data", [b"[]", b'"run"', b"3", b"{", b"\xff", b"[" * 100_000])
@pytest.mark.parametrize("name", ["run.json", "count.json", "diagnosis.json"])
def test_run_file_that_is_no_object_is_named(tmp_path, name, data):
    run = run_with(tmp_path, name, data)
    with pytest.raises(DataError, match=f"{name} (cannot be read|holds a)"):
        getattr(run, {"run.json": "about"}.get(name, name.removesuffix(".json")))


@pytest.mark.parametrize("data", [b"\xff\xfe\n", b"{\n{}\n", b"[]\n", b"3\n"])
def test_bad_metrics_are_named(tmp_path, data):
    with pytest.raises(DataError, match=r"metrics\.jsonl (cannot be read|holds a)"):
        _ = run_with(tmp_path, "metrics.jsonl", data).metrics


def test_truncated_last_line_of_metrics_is_ignored(tmp_path):
    assert run_with(tmp_path, "metrics.jsonl", b'{"epoch": 1}\n{"ep\xff').metrics == [{"epoch": 1}]


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", b"words", b"\x80\x04."])
def test_damaged_tuned_features_are_named(tmp_path, data):
    with pytest.raises(DataError, match=r"tuned\.npy cannot be read"):
        _ = run_with(tmp_path, "tuned.npy", data).tuned


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros((2, 2), np.int64), np.array(["a"])])
def test_tuned_features_of_wrong_shape_are_named(tmp_path, array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    with pytest.raises(DataError, match=r"tuned\.npy cannot be read: an array of"):
        _ = run_with(tmp_path, "tuned.npy", buffer.getvalue()).tuned


@pytest.mark.parametrize("data", [b"[]", b"3", b"{}", b"\xff", b'{"about": 3}', b'{"about": []}'])
def test_damaged_cache_section_is_skipped_with_a_warning(tmp_path, caplog, data):
    (tmp_path / "x-1").mkdir()
    (tmp_path / "x-1" / "key.json").write_bytes(data)
    cache = FeatureCache(tmp_path, limit="1GB")
    assert cache.sections() == []
    assert "x-1 cannot be read" in caplog.text
    assert cache.clear("other") == 0


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"known_classes": [[1]], "unknown_classes": {"Easy": [2]}}',
        b'{"known_classes": [true], "unknown_classes": {"Easy": [2]}}',
        b'{"known_classes": [1.5], "unknown_classes": {"Easy": [2]}}',
        b'{"known_classes": [NaN], "unknown_classes": {"Easy": [2]}}',
        b'{"known_classes": [1], "unknown_classes": [2]}',
    ],
)
def test_bad_class_split_raises(tmp_path, content):
    (tmp_path / "split.json").write_bytes(content)
    with pytest.raises(DataError, match=r"split\.json"):
        read_class_split(tmp_path / "split.json")


@pytest.mark.parametrize("seed", [-1, 2**32, True])
def test_bad_split_seed_raises(seed):
    with pytest.raises(DataError, match="a seed of"):
        random_half(range(10), seed)


@pytest.mark.parametrize("label", [float("nan"), float("inf"), 1.5, 2**31, -2, "wren", [1], np.uint64(2**63 + 5)])
def test_dataset_with_bad_label_raises(label):
    with pytest.raises(DataError, match="image 1 has the label"):
        from_dataset([(picture(0), 0), (picture(1), label)], "drawn")


def test_dataset_labels_may_be_missing():
    labels = [None, np.int64(3), 2.0, True, np.array([4])]
    assert from_dataset([(picture(0), label) for label in labels], "drawn").labels.tolist() == [-1, 3, 2, 1, 4]


def test_failing_dataset_image_is_a_bad_image():
    class Broken(list):
        def __getitem__(self, row):
            raise RuntimeError("the disk is gone")

    broken = Broken([1, 2])
    broken.targets = [0, 1]
    with pytest.raises(BadImageError, match="the disk is gone"):
        from_dataset(broken, "broken").image(0)
