"""Files that labeling tools may have saved: each is entered into the review or refused with a JustrightError."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.bad_day.fuzzing import ANYTHING, budget, damaged, damages
from tests.bad_day.test_readers_fuzz import reading
from tests.bad_day.test_saved_fuzz import nearly
from tests.made_runs import make_run

from justright.review.formats import FORMATS
from justright.review.open_review import OpenReview
from justright.review.tools import export_to, import_from
from justright.runs.run_folder import RunFolder
from justright.utils.errors import DataError, JustrightError

FILES = {
    "label-studio": "tasks.json",
    "coco": "annotations/instances_default.json",
    "fiftyone": "labels.json",
    "cvat": "annotations.xml",
    "csv": "labels.csv",
    "folders": ".categories.json",
}
DEEP = b"[" * 100_000


@pytest.fixture(scope="module")
def opened(tmp_path_factory) -> OpenReview:
    return OpenReview(make_run(tmp_path_factory.mktemp("imports") / "run", per_class=8))


@pytest.fixture(scope="module")
def files(opened, tmp_path_factory) -> dict[str, bytes]:
    """What each format saves; Label Studio as if people had accepted every prediction."""
    folder, found = tmp_path_factory.mktemp("exports"), {}
    for name in ("label-studio", "coco", "fiftyone", "cvat", "csv"):
        out = folder / ("labels.csv" if name == "csv" else name)
        export_to(opened, name, out)
        found[name] = (out if out.is_file() else out / FILES[name]).read_bytes()
    tasks = [task | {"annotations": task["predictions"]} for task in json.loads(found["label-studio"])]
    return found | {"label-studio": json.dumps(tasks[:20]).encode(), "folders": b'{"a": "b"}'}


def take_in(opened: OpenReview, path: Path, form: str) -> None:
    """Import, and see that the log can still be read."""
    before = opened.state.seq
    try:
        import_from(opened, path, "anna", form)
        event("imported")
    except JustrightError:
        event("refused")
        assert opened.state.seq == before, "nothing is changed"
    finally:
        if opened.log.path.exists():
            again = OpenReview(RunFolder.open(opened.run.path))
            assert again.state.group.tolist() == opened.state.group.tolist()


@pytest.mark.parametrize("form", FORMATS)
@given(damage=damages())
@budget(12)
def test_damaged_files_are_imported_or_raise(opened, files, form, damage):
    with reading() as folder:
        file = folder / Path(FILES[form]).name
        file.write_bytes(damaged(files[form], damage))
        take_in(opened, folder if form == "folders" else file, form)


@pytest.mark.parametrize("form", ["label-studio", "coco", "fiftyone"])
@given(data=st.data())
@budget(25)
def test_foreign_json_is_imported_or_raises(opened, files, form, data):
    value = json.loads(files[form])
    if isinstance(value, list):
        first = data.draw(nearly(value[0], 6) | ANYTHING)
        value = data.draw(st.just([first, *value[1:3]]) | ANYTHING)
    else:
        value = data.draw(nearly(value) | ANYTHING)
    with reading() as folder:
        try:
            (folder / "saved.json").write_text(json.dumps(value), encoding="utf-8", errors="surrogatepass")
        except UnicodeEncodeError:
            return
        take_in(opened, folder / "saved.json", form)


XML = "<annotations><image{}><tag{}/></image></annotations>"
BOMB = (
    '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    '<annotations><image name="&b;"><tag label="&b;"/></image></annotations>'
)


@pytest.mark.parametrize(
    ("form", "name", "content", "reason"),
    [
        ("label-studio", "a.json", DEEP, "nested too deeply"),
        ("label-studio", "a.json", b'[{"data": {"path": "a"}, "annotations": [{"result": [[]]}]}]', "annotations"),
        ("label-studio", "a.json", b'{"data": 1}', "list"),
        ("coco", "a.json", b'{"images": [], "annotations": []}', "categories"),
        ("coco", "a.json", b'{"categories": [], "images": [], "annotations": [{"image_id": 1, "category_id": 2}]}',
         "image 1 and category 2"),
        ("coco", "a.json", b'{"categories": [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}], "images": [], '
         b'"annotations": []}', "the same id"),
        ("fiftyone", "a.json", b'{"classes": ["a"], "labels": {"x": 7}}', "the label 7"),
        ("fiftyone", "a.json", b'{"classes": ["a"], "labels": {"x": -1}}', "the label -1"),
        ("fiftyone", "a.json", b'{"labels": []}', "dictionary"),
        ("cvat", "a.xml", b"", "cannot be read"),
        ("cvat", "a.xml", b"<annotations>", "cannot be read"),
        ("cvat", "a.xml", b"<html/>", "begins with <html>"),
        ("cvat", "a.xml", XML.format("", ' label="x"').encode(), "has no name"),
        ("cvat", "a.xml", XML.format(' name="x"', "").encode(), "has no label"),
        ("cvat", "a.xml", BOMB.encode(), "declares a document type"),
        ("cvat", "a.zip", b"PK", "cannot be opened"),
        ("csv", "a.csv", b"", "cannot be read"),
        ("csv", "a.csv", b"path\na.png\n", "class_name"),
        ("csv", "a.csv", b"class_name\ncat\n", "column path"),
        ("csv", "a.csv", b"path,class_name\n,cat\n", "row 2 has a label and no path"),
        ("folders", ".categories.json", b"[]", "categories.json"),
    ],
)  # fmt: skip
def test_bad_files_raise_with_the_reason(opened, tmp_path, form, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=reason):
        import_from(opened, tmp_path if form == "folders" else tmp_path / name, "anna", form)


def test_zip_with_several_files_or_none_raises(opened, tmp_path):
    for names in ([], ["a/annotations.xml", "b/annotations.xml"]):
        with zipfile.ZipFile(tmp_path / "task.zip", "w") as archive:
            for name in names:
                archive.writestr(name, "<annotations/>")
        with pytest.raises(DataError, match=f"{len(names)} files named annotations.xml"):
            import_from(opened, tmp_path / "task.zip", "anna")


def test_folders_with_unreadable_images_raise(opened, tmp_path):
    (tmp_path / "out" / "cats").mkdir(parents=True)
    (tmp_path / "out" / "cats" / "a.png").symlink_to(tmp_path / "gone.png")
    with pytest.raises(JustrightError, match=r"a\.png"):
        import_from(opened, tmp_path / "out", "anna")
    shutil.rmtree(tmp_path / "out")
