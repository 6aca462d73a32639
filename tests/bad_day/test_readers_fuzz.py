"""Random bytes and tables: every reader reads them correctly or raises a JustrightError.

In the usual test run every test tries the same few cases. `JUSTRIGHT_FUZZ=100 pytest tests/bad_day` tries a hundred
times as many, new ones each time. A reader that hangs is stopped by the alarm of `reading`.
"""

from __future__ import annotations

import io
import json
import signal
import string
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bad_day.fuzzing import budget
from tests.conftest import picture

from justright.data import ImageSet, from_dataset, open_images, read_class_split
from justright.data.decoding import decode
from justright.discovery.methods import METHODS
from justright.features.cache import FeatureCache
from justright.features.store import HEADER, read_header, read_quarantine
from justright.runs.run_folder import RunFolder
from justright.utils.errors import BadImageError, JustrightError

SECONDS = 20


@contextmanager
def reading() -> Iterator[Path]:
    """A folder to write bad files into; what is raised inside must be a JustrightError, and soon."""

    def too_long(*_: object) -> None:
        raise AssertionError(f"still reading after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    try:
        with tempfile.TemporaryDirectory() as folder, suppress(JustrightError):
            yield Path(folder)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def look_at(images: ImageSet) -> None:
    """Use what was opened as a command would: its labels, classes and first images, and save it."""
    assert images.labels.shape == (len(images),)
    assert len(images) == 0 or -1 <= images.labels.min() <= images.labels.max() < 2**31
    assert set(images.classes) == set(images.labels.tolist()) - {-1}
    _ = images.hierarchy, images.datasets, repr(images)
    for row in range(min(3, len(images))):
        with suppress(BadImageError):
            images.image(row)


def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """The data with some bytes changed, cut out, doubled, set to zero or left off at the end."""
    found = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        place, length = draw(st.integers(0, max(len(found) - 1, 0))), draw(st.integers(1, 64))
        match draw(st.sampled_from(["change", "change", "cut", "double", "zero", "noise", "end"])):
            case "change" if found:
                found[place] = draw(st.integers(0, 255))
            case "cut":
                del found[place : place + length]
            case "double":
                found[place:place] = found[place : place + length]
            case "zero":
                found[place : place + length] = bytes(len(found[place : place + length]))
            case "noise":
                found[place:place] = draw(st.binary(min_size=1, max_size=20))
            case "end":
                del found[place:]
    return bytes(found)


NAMES = st.sampled_from(
    [
        "path",
        "file",
        "image",
        "label",
        "class_name",
        "dataset",
        "split",
        "id",
        "source",
        "superclass",
        "superclass2",
        "superclass3",
        "bytes",
        "note",
    ]
)
CELLS = st.one_of(
    st.sampled_from(["", "a.png", "0", "1", "-1", "nan", "1.5", "2147483648", "folder:.", "zip:b.zip", "bytes", "\0"]),
    st.sampled_from(
        ["glyphs:seed=0,size=16", "glyphs:seed=0,size=0", "folder:\0", "..", "/", "wren", "bytes:", "zip:"]
    ),
    st.text(max_size=8),
)


@st.composite
def csv_bytes(draw: st.DrawFn) -> bytes:
    header = draw(st.lists(NAMES, min_size=1, max_size=6))
    n_cells = st.integers(len(header), len(header)) | st.integers(0, 7)
    rows = [[draw(CELLS) for _ in range(draw(n_cells))] for _ in range(draw(st.integers(0, 5)))]
    quote = draw(st.sampled_from(["{}", '"{}"']))
    text = "\n".join(",".join(quote.format(cell) for cell in row) for row in [header, *rows])
    data = text.encode("utf-8", "surrogatepass")
    return damaged(draw, data) if draw(st.booleans()) else data


def arrays(n: int) -> st.SearchStrategy[pa.Array]:
    """A column of `n` values of any type that a Parquet file can hold."""

    def of(values: st.SearchStrategy[Any], kind: pa.DataType) -> st.SearchStrategy[pa.Array]:
        cells = st.lists(st.none() | values, min_size=n, max_size=n)
        return cells.map(lambda found: pa.array(found, kind))

    text = CELLS.map(lambda cell: cell.encode("utf-8", "replace").decode())
    return st.one_of(
        of(text, pa.string()),
        of(text, pa.large_string()),
        of(text, pa.dictionary(pa.int8(), pa.string())),
        of(st.binary(max_size=8), pa.binary()),
        of(st.binary(max_size=8), pa.binary()).map(claimed_as_text),
        of(st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 3), pa.int64()),
        of(st.integers(0, 2**64 - 1), pa.uint64()),
        of(st.integers(-1, 3), pa.int8()),
        of(st.floats() | st.integers(-1, 3).map(float), pa.float64()),
        of(st.booleans(), pa.bool_()),
        of(st.lists(st.integers(0, 3), max_size=2), pa.list_(pa.int32())),
        of(st.fixed_dictionaries({"a": st.integers(0, 3)}), pa.struct([("a", pa.int32())])),
        of(st.dates(), pa.date32()),
        of(st.datetimes(), pa.timestamp("us")),
        st.just(pa.nulls(n)),
    )


def claimed_as_text(values: pa.Array) -> pa.Array:
    """Bytes that a file says are text, which nobody checked."""
    return pa.Array.from_buffers(pa.string(), len(values), values.buffers())


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    n = draw(st.integers(0, 4))
    names = draw(st.lists(NAMES, min_size=1, max_size=6))
    if draw(st.integers(0, 9)):
        names.append("path")
    return pa.table([draw(arrays(n)) for _ in names], names=names)


def parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression=None)
    return buffer.getvalue()


def png() -> bytes:
    buffer = io.BytesIO()
    picture(0).save(buffer, "PNG")
    return buffer.getvalue()


def saved_set() -> bytes:
    """What `ImageSet.save` writes for images that live in memory."""
    with tempfile.TemporaryDirectory() as folder:
        from_dataset([(picture(0), 0), (picture(1), 1)], "drawn").save(Path(folder) / "set.parquet")
        return (Path(folder) / "set.parquet").read_bytes()


SAVED = saved_set()


@given(data=csv_bytes() | st.binary(max_size=200))
@budget(60)
def test_any_csv_is_read_or_raises(data):
    with reading() as folder:
        (folder / "a.png").write_bytes(png())
        (folder / "table.csv").write_bytes(data)
        look_at(open_images(folder / "table.csv"))


@given(table=tables())
@budget(80)
def test_any_table_is_read_or_raises(table):
    with reading() as folder:
        (folder / "a.png").write_bytes(png())
        (folder / "table.parquet").write_bytes(parquet(table))
        images = open_images(folder / "table.parquet")
        assert len(images) == len(table)
        look_at(images)


@given(data=st.data())
@budget(60)
def test_damaged_parquet_is_read_or_raises(data):
    with reading() as folder:
        (folder / "set.parquet").write_bytes(data.draw(st.composite(damaged)(SAVED)))
        look_at(open_images(folder / "set.parquet"))


@given(data=st.data())
@budget(60)
def test_any_zip_is_read_or_raises(data):
    members = data.draw(st.lists(st.sampled_from(["a.png", "c/b.png", "t.csv", "c/u.CSV", "x.txt", "d/"]), unique=True))
    method = data.draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name in members:
            archive.writestr(name, png() if name.endswith("png") else data.draw(csv_bytes()))
    content = buffer.getvalue()
    with reading() as folder:
        (folder / "birds.zip").write_bytes(data.draw(st.just(content) | st.composite(damaged)(content)))
        look_at(open_images(folder / "birds.zip"))


LABELS = st.lists(st.integers(-2, 9) | st.sampled_from([True, 1.0, "wren", None, [1]]), max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
SPLITS = st.fixed_dictionaries(
    {},
    optional={"known_classes": LABELS | JSON, "unknown_classes": JSON | st.dictionaries(st.text(max_size=4), LABELS)},
)


@given(content=(SPLITS | JSON).map(json.dumps).map(str.encode) | st.binary(max_size=60))
@budget(100)
def test_any_class_split_is_read_or_raises(content):
    with reading() as folder:
        (folder / "split.json").write_bytes(content)
        split = read_class_split(folder / "split.json", {3: "wren"})
        assert all(type(label) is int and label >= 0 for label in (*split.old, *split.new))
        assert not set(split.old) & set(split.new)


@pytest.mark.parametrize("method", list(METHODS))
@given(data=st.data())
@budget(40)
def test_any_settings_make_a_config_or_raise(method, data):
    config = METHODS[method].config_class()
    name = data.draw(
        st.sampled_from([each.name for each in fields(config)]) | st.text(string.ascii_lowercase, max_size=4)
    )
    values = {name: data.draw(JSON | st.sampled_from([0, 1, 0.5, 2.5, "min", float("nan"), float("inf")]))}
    with reading():
        made = object.__new__(type(config))
        try:
            made = config.with_settings(values)
        except Exception as error:  # the type checker of the test run comes first; without it the range does
            if "TypeCheckError" not in type(error).__name__:
                raise
            return
        json.dumps({each.name: repr(getattr(made, each.name)) for each in fields(made)})


def readers_of_a_store(folder: Path) -> list[Callable[[], Any]]:
    return [lambda: read_header(folder), lambda: read_quarantine(folder)]


HEADERS = st.fixed_dictionaries(
    {},
    optional={
        name: JSON | st.sampled_from(["justright features 1", "float16", [8], True])
        for name in ("format", "complete", "shape", "dtype", "backbone", "transform", "computation", "data")
    },
)


@given(content=(HEADERS | JSON).map(json.dumps).map(str.encode) | st.binary(max_size=60))
@budget(60)
def test_any_store_header_is_read_or_raises(content):
    for number in range(2):
        with reading() as folder:
            for name in (HEADER, "quarantine.json"):
                (folder / name).write_bytes(content)
            readers_of_a_store(folder)[number]()


@given(content=JSON.map(json.dumps).map(str.encode) | st.binary(max_size=60))
@budget(60)
def test_any_run_or_cache_file_is_read_or_raises(content):
    for part in ("about", "count", "diagnosis", "metrics", "tuned", "scores"):
        with reading() as folder:
            for name in ("run.json", "count.json", "diagnosis.json", "metrics.jsonl", "tuned.npy", "scores.json"):
                (folder / name).write_bytes(content + b"\n")
            getattr(RunFolder(folder), part)
    with reading() as folder:
        (folder / "x-1").mkdir()
        (folder / "x-1" / "key.json").write_bytes(content)
        cache = FeatureCache(folder, limit="1GB")
        _ = cache.sections(), cache.clear("other")


def encoded(form: str) -> bytes:
    buffer = io.BytesIO()
    picture(3, (20, 10)).save(buffer, form)
    return buffer.getvalue()


IMAGES = [encoded(form) for form in ("PNG", "JPEG", "WEBP", "TIFF", "GIF", "BMP", "PPM", "AVIF", "JPEG2000")]


@given(data=st.data())
@budget(150)
@pytest.mark.filterwarnings("ignore")
def test_any_image_is_decoded_or_raises(data):
    content = data.draw(st.sampled_from(IMAGES).flatmap(lambda image: st.composite(damaged)(image)) | st.binary())
    with reading():
        image = decode(content)
        assert image.mode == "RGB"
        assert np.asarray(image).dtype == np.uint8


def test_files_are_valid_before_damage():
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "set.parquet"
        place.write_bytes(SAVED)
        assert open_images(place).image(1).size == (16, 12)
        pa_csv.write_csv(pa.table({"path": ["a.png"], "label": [3]}), Path(folder) / "t.csv")
        assert open_images(Path(folder) / "t.csv").labels.tolist() == [3]
    assert [decode(image).size for image in IMAGES] == [(20, 10)] * len(IMAGES)
