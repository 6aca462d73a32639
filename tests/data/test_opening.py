"""Everything that `open_images` accepts, and what it rejects."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from tests.conftest import picture
from tests.data.drawn_files import file_of

from justright.data import ImageSet, open_images
from justright.data.folder import unrecognized
from justright.utils.errors import DataError, MissingDataError
from justright.utils.hashing import hash_bytes

pandas = pytest.importorskip("pandas")
datasets = pytest.importorskip("datasets")


@pytest.fixture
def photos(make_tree, monkeypatch) -> Path:
    """Two crows and a wren; the current folder is the one above."""
    root = make_tree({"crow": 2, "wren": 1}, "photos")
    monkeypatch.chdir(root.parent)
    return root


FILES = ["photos/crow/0.png", "photos/crow/1.png", "photos/wren/0.png"]


def is_birds(images: ImageSet) -> bool:
    assert [images.image(row).size for row in range(3)] == [(16, 12)] * 3
    return images.labels.tolist() == [0, 0, 1] and images.classes == {0: "crow", 1: "wren"}


# files and folders


def test_missing_path_is_reported(tmp_path):
    with pytest.raises(MissingDataError, match="no such file or folder"):
        open_images(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no images"):
        open_images(tmp_path / "empty")


def test_real_birds_open_from_their_zip(real_data):
    birds = open_images(real_data / "cub200.zip")
    assert len(birds.classes) == 200
    assert birds.hierarchy[0] == ("Procellariiformes", "Diomedeidae", "Albatross")
    assert np.asarray(birds.image(0)).shape[2] == 3


def test_folder_named_like_a_data_set_is_a_folder(make_tree, monkeypatch):
    root = make_tree({"a": 1}, name="glyphs")
    monkeypatch.chdir(root.parent)
    assert open_images("glyphs").paths == ["a/0.png"]
    assert open_images(Path("glyphs")).paths == ["a/0.png"]


def test_endings_include_heif_where_it_is_read(tmp_path, monkeypatch):
    for reads, name in ((False, ".avif, .bmp"), (True, ".gif, .heic, .heif, .hif, .jp2")):
        monkeypatch.setattr("justright.data.folder.reads_heif", lambda reads=reads: reads)
        with pytest.raises(DataError) as error:
            open_images(tmp_path)
        assert name in error.value.expected
        assert (".heic" in error.value.expected) is reads


def test_folder_without_images_names_what_it_holds(tmp_path, monkeypatch):
    monkeypatch.setattr("justright.data.folder.reads_heif", lambda: False)
    (tmp_path / "photos").mkdir()
    with pytest.raises(DataError, match="photos holds no images, and no file") as error:
        open_images(tmp_path / "photos")
    assert ".jpeg, .jpg" in error.value.expected
    assert "class" not in str(error.value)
    for name in ("a.txt", "b.txt", "c.doc", "d.heic"):
        (tmp_path / "photos" / name).write_text("")
    with pytest.raises(DataError, match=r"and 4 other files \(a\.txt, b\.txt, c\.doc, \.\.\.\)") as error:
        open_images(tmp_path / "photos")
    assert error.value.advice == "pip install 'justright[heif]' to read 1 HEIF photo"
    assert unrecognized(tmp_path / "photos") == ["a.txt", "b.txt", "c.doc", "d.heic"]


def test_name_renames_any_source(photos):
    assert open_images("photos").datasets == ["photos"]
    assert open_images("photos", name="birds").datasets == ["birds"]
    assert open_images(FILES, name="birds").datasets == ["birds"]
    images = open_images(photos)
    assert open_images(images) is images
    assert open_images(images, name="birds").datasets == ["birds"]


# lists and dicts of paths


@pytest.mark.parametrize("as_list", [list, tuple, np.array, lambda paths: [Path(p) for p in paths], pandas.Series])
def test_list_of_paths_has_no_labels(photos, as_list):
    images = open_images(as_list(FILES))
    assert images.paths == FILES
    assert images.labels.tolist() == [-1, -1, -1]
    assert images.content_ids() == [hash_bytes((photos.parent / path).read_bytes()) for path in FILES]


def test_list_takes_absolute_paths_and_folders(photos):
    assert open_images([photos / "wren", photos / "crow" / "0.png"]).paths == [
        f"{photos}/wren/0.png",
        f"{photos}/crow/0.png",
    ]
    assert open_images(f"{photos}/wren/0.png").paths == [f"{photos}/wren/0.png"]


def test_list_survives_another_current_folder_and_a_save(photos, tmp_path, monkeypatch):
    images = open_images(FILES)
    images.save(photos.parent / "list.parquet")
    monkeypatch.chdir("/")
    assert images.image(2).size == (16, 12)
    assert open_images(photos.parent / "list.parquet").content_ids() == images.content_ids()


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ([], "the list of images is empty"),
        (["nothing.png"], r"none of the 1 files of images exist, such as nothing\.png"),
        (["photos/crow/0.png", 3], "the list holds a int"),
        (["a.zip"], r"the list holds a\.zip"),
        ({"crow": ["birds.csv"]}, "class 'crow' holds birds.csv"),
        ({}, "the dict of classes holds no paths"),
        ({"crow": []}, "the dict of classes holds no paths"),
        ({"crow": 3}, "'crow' holds a int"),
        ({"crow": ["photos"], "wren": ["nothing.jpg", None]}, "class 'wren' holds a NoneType"),
    ],
)
def test_bad_lists_and_dicts_are_rejected(photos, source, problem):
    with pytest.raises(DataError, match=problem):
        open_images(source)


def test_dict_of_classes_takes_paths_and_folders(photos):
    assert is_birds(open_images({"crow": FILES[:2], "wren": "photos/wren"}))
    assert is_birds(open_images({"crow": photos / "crow", "wren": (Path(FILES[2]),)}))
    assert open_images({7: "photos/crow", "wren": "photos/wren"}).classes == {0: "7", 1: "wren"}


def test_missing_file_in_a_list_is_a_bad_image(photos):
    images = open_images([*FILES, "gone.png"])
    assert images.content_ids(is_strict=False)[3] == ""


# tables


@pytest.mark.parametrize("as_source", [lambda frame: frame, lambda frame: pa.Table.from_pandas(frame)])
def test_table_with_text_or_number_labels(photos, as_source):
    frame = pandas.DataFrame({"path": FILES, "label": ["crow", "crow", "wren"], "note": [1.5, None, 2]})
    assert is_birds(open_images(as_source(frame)))
    numbered = pandas.DataFrame({"path": FILES, "label": [4, 4, 9], "class_name": ["crow", "crow", "wren"]})
    assert open_images(as_source(numbered)).classes == {4: "crow", 9: "wren"}
    assert open_images(as_source(numbered[["path", "label"]])).classes == {4: "4", 9: "9"}


def test_frame_keeps_id_and_split_and_takes_missing_labels(photos):
    frame = pandas.DataFrame(
        {
            "path": [Path(path) for path in FILES],
            "label": [4, None, 9],
            "id": list("xyz"),
            "split": pandas.Categorical(["train", "train", "test"]),
        }
    )
    images = open_images(frame)
    assert images.labels.tolist() == [4, -1, 9]
    assert images.ids == ["x", "y", "z"]
    assert images.of_split("test").ids == ["z"]
    assert open_images(frame[frame["split"] == "test"]).ids == ["z"]  # an index that does not start at 0
    named = pandas.DataFrame({"path": FILES, "label": ["crow", None, "wren"]})
    assert open_images(named).labels.tolist() == [0, -1, 1]


def test_frame_without_labels_is_a_target(photos):
    assert open_images(pandas.DataFrame({"path": FILES})).labels.tolist() == [-1, -1, -1]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"picture": FILES}, "the table has the columns picture"),
        ({"path": []}, "the table has no rows"),
        ({"path": ["a.png", "b.png"]}, "none of the 2 files of the table exist"),
        ({"path": [FILES[0], None]}, "row 3 has no path"),
        ({"path": FILES, "label": ["crow", 1, 2.5]}, "column label mixes types"),
        ({"path": FILES, "label": [0.5, 1, 2]}, r"label 0\.5"),
        ({"path": FILES, "label": [-7, 1, 2]}, "label -7"),
        ({"path": FILES, "label": [[1], [2], [3]]}, "cannot be read as text"),
    ],
)
def test_bad_tables_are_rejected(photos, columns, problem):
    with pytest.raises(DataError, match=problem):
        open_images(pandas.DataFrame(columns))


def test_frame_with_two_label_columns_is_rejected(photos):
    frame = pandas.DataFrame([[FILES[0], 1, 2]], columns=["path", "label", "label"])
    with pytest.raises(DataError, match="2 columns named label"):
        open_images(frame)


# data sets in memory


class Birds:
    """As a torchvision data set: items of image and label."""

    classes = ("crow", "wren")

    def __init__(self, as_item=lambda row: picture(row)):
        self.as_item = as_item

    def __len__(self):
        return 3

    def __getitem__(self, row):
        if row >= 3:
            raise IndexError(row)
        return self.as_item(row), [0, 0, 1][row]


class Subset:
    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices


def test_torchvision_style_data_set(photos):
    assert is_birds(open_images(Birds()))
    assert open_images(Birds()).datasets == ["birds"]
    in_files = open_images(Birds(lambda row: FILES[row]))
    assert is_birds(in_files)
    assert in_files.paths == FILES
    assert open_images(Subset(Birds(), [2, 0])).labels.tolist() == [1, 0]


def test_list_of_images_has_no_labels():
    images = open_images([picture(0), np.asarray(picture(1))])
    assert images.labels.tolist() == [-1, -1]
    assert images.image(1).tobytes() == picture(1).tobytes()
    assert open_images([(picture(0), "wren"), (picture(1), "crow")]).classes == {0: "crow", 1: "wren"}


def hugging_face(photos: Path | None = None, **columns):
    """A Dataset whose images are bytes in it, or files on disk."""
    images = [picture(row) for row in range(3)] if photos is None else [str(photos.parent / path) for path in FILES]
    data = datasets.Dataset.from_dict({"image": images, **columns})
    return data.cast_column("image", datasets.Image())


@pytest.mark.parametrize("is_on_disk", [True, False])
def test_hugging_face_data_set_with_class_labels(photos, is_on_disk):
    data = hugging_face(photos if is_on_disk else None, species=[0, 0, 1])
    data = data.cast_column("species", datasets.ClassLabel(names=["crow", "wren"]))
    assert is_birds(open_images(data))
    assert is_birds(open_images(data.with_format("numpy")))
    assert open_images(data.select([2, 0])).labels.tolist() == [1, 0]
    if is_on_disk:  # the same ids as the files, so copies are found
        assert open_images(data).content_ids() == open_images(photos).content_ids()


def test_hugging_face_data_set_with_text_or_no_labels():
    assert is_birds(open_images(hugging_face(label=["crow", "crow", "wren"])))
    assert open_images(hugging_face(caption=["a", "b", "c"])).labels.tolist() == [-1, -1, -1]


def test_hugging_face_images_are_decoded_only_when_read(monkeypatch):
    data = hugging_face(label=["crow", "crow", "wren"])
    monkeypatch.setattr("PIL.Image.open", None)
    images = open_images(data)
    assert len(set(images.content_ids())) == 3


def test_unusable_data_sets_are_rejected():
    data = hugging_face()
    with pytest.raises(DataError, match="has the columns text") as error:
        open_images(datasets.Dataset.from_dict({"text": ["a"]}))
    assert error.value.expected == "a column of images"
    with pytest.raises(DataError, match="streaming=False"):
        open_images(data.to_iterable_dataset())
    with pytest.raises(DataError, match=r"such as data\['train'\]"):
        open_images(datasets.DatasetDict(train=data))
    with pytest.raises(DataError, match="cannot open a int as images") as error:
        open_images(3)
    assert "a list of paths" in error.value.expected
    with pytest.raises(DataError, match="without a transform"):
        open_images([(np.zeros((4, 4, 3)), 0)]).image(0)


@pytest.mark.parametrize(
    "source",
    [
        lambda: Birds(),
        lambda: [picture(row) for row in range(3)],
        lambda: hugging_face(),
        lambda: [file_of(picture(row)) for row in range(3)],
    ],
)
def test_images_in_memory_keep_their_ids_in_workers_and_saved_runs(tmp_path, source):
    images = open_images(source())
    ids = images.content_ids()
    assert len(set(ids)) == 3
    assert open_images(source()).content_ids() == ids  # as in a resumed run
    if not isinstance(source(), Birds):
        assert pickle.loads(pickle.dumps(images)).content_ids() == ids
    images.take([2, 0]).with_ids().with_content().save(tmp_path / "target.parquet")
    again = open_images(tmp_path / "target.parquet").with_content(pa.chunked_array([[ids[2], ids[0]]]))
    assert again.content_ids() == [ids[2], ids[0]]
    assert again.changed() == []
    assert again.image(1).tobytes() == picture(0).tobytes()


def test_optional_libraries_are_not_imported():
    code = (
        "import sys; from PIL import Image; from justright import open_images; "
        "open_images([Image.new('RGB', (4, 4))]).content_ids(); "
        "sys.exit(str({'datasets', 'torch', 'torchvision'} & set(sys.modules) or ''))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip() == ""


def test_image_is_rgb_whatever_the_object_holds():
    assert open_images([Image.new("L", (4, 4), 7)]).image(0).mode == "RGB"
