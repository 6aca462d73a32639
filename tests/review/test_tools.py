"""Exports to labeling tools, and imports of the corrected labels."""

from __future__ import annotations

import csv
import json
import os

import pytest
from tests.review.tool_edits import EDITS, saved_json

from justright.data import ImageSet, open_images
from justright.review.export import export
from justright.review.formats import FORMATS, format_of
from justright.review.image_names import ImageNames
from justright.review.open_review import OpenReview
from justright.review.relabel import NO_CATEGORY, Placed, Relabel
from justright.review.state import REJECTED, ConflictError
from justright.review.tools import export_to, import_from
from justright.runs.run_folder import RunFolder
from justright.utils.errors import DataError, JustrightError


@pytest.fixture
def opened(run, photos):
    """The review of a run on files; `drawn_review` is of one on images that exports have to write."""
    return OpenReview(RunFolder.open(run.path))


@pytest.fixture
def drawn_review(run):
    return OpenReview(run)


def first_new(opened):
    """The first discovered cluster."""
    return next(number for number, each in enumerate(opened.predictions.categories) if each.kind == "discovered")


def exported(opened, to, tmp_path, **options):
    out = tmp_path / ("labels.csv" if to == "csv" else f"{to}-export")
    return out, export_to(opened, to, out, **options)


def edited(opened, to, out, labels):
    """The export, saved by its tool with other labels for some images, by row."""
    names = ImageNames(opened.run.target).names
    more = [{names[row]: opened.run.target.encoded(row) for row in range(len(names))}] if to == "folders" else []
    return EDITS[to](out, {names[row]: label for row, label in labels.items()}, *more)


def labels_now(opened, tmp_path):
    """The class names of `--export`, by row."""
    export(opened, tmp_path / "now.csv", "csv")
    with (tmp_path / "now.csv").open(encoding="utf-8", newline="") as file:
        return [row["class_name"] or None for row in csv.DictReader(file)]


@pytest.mark.parametrize("kind", ["opened", "drawn_review"])
@pytest.mark.parametrize("to", FORMATS)
def test_a_correction_in_a_tool_comes_back_into_the_review(kind, to, tmp_path, request):
    opened = request.getfixturevalue(kind)
    before = labels_now(opened, tmp_path)
    out, done = exported(opened, to, tmp_path)
    assert (done.n_images, done.n_labeled) == (len(before), len(before))
    other = next(name for name in before if name != before[0])
    corrected = {0: other, 1: "something new", 2: NO_CATEGORY}
    imported = import_from(opened, edited(opened, to, out, corrected), "anna")
    assert (imported.format, imported.n_moved, imported.named, imported.action) == (to, 3, ("something new",), 1)
    assert labels_now(opened, tmp_path) == [other, "something new", None, *before[3:]]
    assert opened.state.group[2] == REJECTED
    again = OpenReview(RunFolder.open(opened.run.path))
    assert again.state.group.tolist() == opened.state.group.tolist(), "the log says the same"


@pytest.mark.parametrize("to", FORMATS)
def test_an_untouched_export_changes_nothing(opened, to, tmp_path):
    out, _ = exported(opened, to, tmp_path)
    done = import_from(opened, edited(opened, to, out, {}), "anna")
    assert (done.n_labels, done.n_moved, done.action) == (len(opened.predictions), 0, None)
    assert not opened.log.path.exists()


@pytest.mark.parametrize("to", FORMATS)
def test_an_export_has_the_names_and_decisions_of_the_review(opened, say, to, tmp_path):
    say(opened, "name", cluster=14, name='Sigma & "co" <1>')
    say(opened, "discard", cluster=15)
    say(opened, "reject", cluster=16, rows=opened.state.rows_of(16)[:1].tolist())
    first, second = opened.state.rows_of(14)[:2].tolist()
    out, done = exported(opened, to, tmp_path)
    assert done.n_labeled == len(opened.predictions) - len(opened.state.rows_of(15)) - 1
    name = opened.state.labels[17].name
    before = labels_now(opened, tmp_path)
    imported = import_from(opened, edited(opened, to, out, {first: name, second: name}), "ben")
    assert (imported.n_moved, imported.named) == (2, ())
    after = labels_now(opened, tmp_path)
    assert {row for row, label in enumerate(after) if label != before[row]} == {first, second}
    assert after[first] == name


def test_a_category_renamed_in_a_tool_is_named_and_kept(opened, tmp_path):
    out, _ = exported(opened, "coco", tmp_path)
    new = first_new(opened)
    rows, other = opened.state.rows_of(new).tolist(), int(opened.state.rows_of(0)[0])
    file = edited(opened, "coco", out, dict.fromkeys([other, *rows], "Omega"))
    done = import_from(opened, file, "anna")
    assert (done.n_moved, done.named) == (1, ("Omega",))
    assert opened.state.labels[new].name == "Omega"
    assert opened.state.status(new) == "kept"
    assert opened.state.rows_of(new).tolist() == sorted([other, *rows])


def test_a_known_class_is_not_renamed(opened, tmp_path):
    out, _ = exported(opened, "coco", tmp_path)
    name, rows = opened.state.labels[0].name, opened.state.rows_of(0).tolist()
    done = import_from(opened, edited(opened, "coco", out, dict.fromkeys(rows, "Omega")), "anna")
    assert (done.n_moved, done.named) == (len(rows), ("Omega",))
    assert opened.state.labels[0].name == name


def test_import_is_one_action(opened, say, tmp_path):
    out, _ = exported(opened, "coco", tmp_path)
    new = first_new(opened)
    before, rows = labels_now(opened, tmp_path), opened.state.rows_of(new).tolist()
    file = edited(opened, "coco", out, {0: "first new", 1: "second new", **dict.fromkeys(rows, "Omega")})
    import_from(opened, file, "anna")
    after = labels_now(opened, tmp_path)
    say(opened, "undo")
    assert labels_now(opened, tmp_path) == before
    assert opened.state.status(new) == "open"
    say(opened, "redo")
    assert labels_now(opened, tmp_path) == after
    assert file.name in opened.state.entries[0].line.action.describe(opened.state)


def test_moved_images_have_no_confidence(opened, say, tmp_path):
    row = int(opened.state.rows_of(14)[0])
    say(opened, "move", cluster=14, rows=[row], to=15)
    for to in ("label-studio", "coco", "fiftyone"):
        exported(opened, to, tmp_path)
    expected = [round(float(each), 6) for each in opened.predictions.confidence]
    expected[row] = None
    tasks = json.loads((tmp_path / "label-studio-export" / "tasks.json").read_text())
    assert [task["predictions"][0].get("score") for task in tasks] == expected
    coco = json.loads((tmp_path / "coco-export" / "annotations" / "instances_default.json").read_text())
    assert [each.get("score") for each in coco["annotations"]] == expected
    fiftyone = json.loads((tmp_path / "fiftyone-export" / "labels.json").read_text())
    assert [each.get("confidence") for each in fiftyone["labels"].values()] == expected


@pytest.mark.parametrize("is_copy", [False, True])
def test_images_are_found_where_the_export_says(opened, photos, is_copy, tmp_path):
    names = ImageNames(opened.run.target).names
    for to in ("label-studio", "coco", "cvat", "fiftyone"):
        out, _ = exported(opened, to, tmp_path / "out", is_copy=is_copy)
        inside = out / FORMATS[to].images
        root = inside if is_copy or to == "fiftyone" else photos
        assert all((root / name).is_file() for name in names)
        assert inside.exists() == (root == inside)
        has_links = any(file.is_symlink() for file in out.rglob("*.png"))
        assert has_links == (to == "fiftyone" and not is_copy)


def test_table_of_a_zip_states_the_source_of_images(drawn_review, tmp_path):
    assert "relative to the zip or table" in exported(drawn_review, "csv", tmp_path)[1].usage


def test_imported_images_are_no_longer_in_doubt(opened, tmp_path):
    row, name = int(opened.state.rows_of(14)[0]), opened.state.labels[15].name
    (tmp_path / "one.csv").write_text(f"path,label\n{ImageNames(opened.run.target).names[row]},{name}\n")
    import_from(opened, tmp_path / "one.csv", "anna")
    assert opened.lists.images(15, "uncertain")[-1] == row


def test_label_studio_addresses_start_above_the_images(opened, photos, tmp_path):
    out, done = exported(opened, "label-studio", tmp_path)
    task = json.loads((out / "tasks.json").read_text())[0]
    assert task["data"]["image"] == f"/data/local-files/?d=photos/{task['data']['path']}"
    assert f"DOCUMENT_ROOT={photos.parent}." in done.usage


def test_folders_of_invalid_names_map_to_their_category(opened, say, tmp_path):
    say(opened, "name", cluster=14, name="what: this?")
    out, _ = exported(opened, "folders", tmp_path)
    assert (out / "what_ this_").is_dir()
    assert import_from(opened, out, "anna").action is None
    assert len(open_images(out)) == len(opened.predictions)


@pytest.mark.parametrize("is_copy", [False, True])
def test_files_in_folders_are_recognized_by_content(opened, is_copy, tmp_path):
    out, _ = exported(opened, "folders", tmp_path, is_copy=is_copy)
    file = next(out.rglob("*.png"))
    os.makedirs(out / "odd")
    file.rename(out / "odd" / "Copy of it (2).png")
    assert import_from(opened, out, "anna").n_moved == 1
    (out / "odd" / "other.png").write_bytes(b"not an image of the run")
    with pytest.raises(DataError, match=r"1 image that this run does not have[^\n]*\n  .*other\.png"):
        import_from(opened, out, "anna")


UNKNOWN = {
    "label-studio": [{"data": {"path": "elsewhere/a.png"}, "annotations": [
        {"result": [{"from_name": "category", "value": {"choices": ["x"]}}]}]}],
    "coco": {"categories": [{"id": 1, "name": "x"}], "images": [{"id": 1, "file_name": "elsewhere/a.png"}],
             "annotations": [{"image_id": 1, "category_id": 1}]},
    "fiftyone": {"classes": ["x"], "labels": {"elsewhere/a": 0}},
    "cvat": '<annotations><image name="elsewhere/a.png"><tag label="x"/></image></annotations>',
    "csv": "path,class_name\nelsewhere/a.png,x\n",
}  # fmt: skip
ENDINGS = {"cvat": ".xml", "csv": ".csv"}


def text_of(value):
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize("to", UNKNOWN)
def test_unknown_images_are_refused_by_name(opened, to, tmp_path):
    file = tmp_path / f"corrected{ENDINGS.get(to, '.json')}"
    file.write_text(text_of(UNKNOWN[to]))
    assert format_of(file) == to
    with pytest.raises(DataError, match="1 image that this run does not have") as refused:
        import_from(opened, file, "anna")
    assert "elsewhere/a" in str(refused.value)
    assert not opened.log.path.exists()


@pytest.mark.parametrize("to", UNKNOWN)
def test_two_labels_for_one_image_are_refused(opened, to, tmp_path):
    name = opened.run.target.paths[0]
    name = name if name.endswith(".png") else f"{name}.png"
    text = text_of(UNKNOWN[to]).replace("elsewhere/a.png", name).replace("elsewhere/a", name.removesuffix(".png"))
    double = {
        "label-studio": lambda: text.replace('["x"]', '["x", "y"]'),
        "coco": lambda: text.replace('"name": "x"}', '"name": "x"}, {"id": 2, "name": "y"}').replace(
            '"category_id": 1}', '"category_id": 1}, {"image_id": 1, "category_id": 2}'
        ),
        "fiftyone": lambda: text.replace('["x"]', '["x", "y"]').replace(": 0", ": [0, 1]"),
        "cvat": lambda: text.replace("</image>", '<tag label="y"/></image>'),
        "csv": lambda: text + text.splitlines()[1].replace(",x", ",y"),
    }
    file = tmp_path / f"corrected{ENDINGS.get(to, '.json')}"
    file.write_text(double[to]())
    with pytest.raises(DataError, match=r"1 image two labels:\n  .*: x and y"):
        import_from(opened, file, "anna")
    assert not opened.log.path.exists()


@pytest.mark.parametrize("to", UNKNOWN)
def test_the_same_label_twice_is_one_label(opened, to, tmp_path):
    out, _ = exported(opened, to, tmp_path)
    file = edited(opened, to, out, {0: "x"})
    if to == "label-studio":
        tasks = json.loads(file.read_text())
        saved_json(file, [{**task, "annotations": task["annotations"] * 2} for task in tasks])
    elif to == "csv":
        file.write_text(file.read_text() + file.read_text().splitlines()[1] + "\n")
    assert import_from(opened, file, "anna").n_moved == 1


def test_files_without_labels_of_people_are_refused(opened, tmp_path):
    out, _ = exported(opened, "label-studio", tmp_path)
    with pytest.raises(DataError, match="holds no labels"):
        import_from(opened, out, "anna")
    skipped = [{"data": {"path": "a"}, "annotations": [{"was_cancelled": True, "result": []}]}]
    with pytest.raises(DataError, match="holds no labels"):
        import_from(opened, saved_json(tmp_path / "skipped.json", skipped), "anna")


def test_short_exports_of_label_studio_are_read(opened, tmp_path):
    out, _ = exported(opened, "label-studio", tmp_path)
    tasks = json.loads((out / "tasks.json").read_text())
    short = [
        {"id": 1, **tasks[0]["data"], "category": "x"},
        {"id": 2, **tasks[1]["data"], "category": {"choices": ["y"]}},
    ]
    short += [{"id": 3, "image": tasks[2]["data"]["image"], "category": "z"}, {"id": 4, "image": "b.png"}]
    done = import_from(opened, saved_json(tmp_path / "short.json", short), "anna")
    assert (done.n_labels, done.named) == (3, ("x", "y", "z"))


# what the review and a file say about one image at the same time


def test_import_keeps_changes_made_on_the_page(opened, say, tmp_path):
    out, _ = exported(opened, "coco", tmp_path)
    row, other = int(opened.state.rows_of(14)[0]), int(opened.state.rows_of(15)[0])
    say(opened, "move", cluster=14, rows=[row], to=16)
    say(opened, "name", cluster=17, name="Phi")
    done = import_from(opened, edited(opened, "coco", out, {other: "Psi"}), "ben")
    assert (done.n_moved, done.named) == (1, ("Psi",))
    assert opened.state.group[row] == 16, "the file shows where it was before"
    assert opened.state.labels[17].name == "Phi"


def test_image_changed_on_both_sides_is_refused(opened, say, tmp_path):
    out, _ = exported(opened, "coco", tmp_path)
    row, other = int(opened.state.rows_of(14)[0]), int(opened.state.rows_of(15)[0])
    say(opened, "move", cluster=14, rows=[row], to=16)
    file = edited(opened, "coco", out, {row: "Psi", other: "Psi"})
    with pytest.raises(
        ConflictError, match=f"1 image changed both.*\n.*Psi in the file, {opened.state.labels[16].name}"
    ):
        import_from(opened, file, "ben")
    assert opened.state.seq == 1
    say(opened, "undo")
    assert import_from(opened, file, "ben").n_moved == 2


def test_category_named_on_both_sides_is_refused(opened, say, tmp_path):
    out, _ = exported(opened, "coco", tmp_path)
    new = first_new(opened)
    file = edited(opened, "coco", out, dict.fromkeys(opened.state.rows_of(new).tolist(), "Omega"))
    say(opened, "name", cluster=new, name="Phi")
    with pytest.raises(ConflictError, match="was named Phi in the review and Omega in the file"):
        import_from(opened, file, "ben")


def test_a_second_export_shows_what_the_first_import_did(opened, tmp_path):
    out, _ = exported(opened, "coco", tmp_path / "first")
    before, other = opened.state.labels[14].name, opened.state.labels[15].name
    row = int(opened.state.rows_of(14)[0])
    import_from(opened, edited(opened, "coco", out, {row: other}), "anna")
    out, _ = exported(opened, "coco", tmp_path / "second")
    assert import_from(opened, edited(opened, "coco", out, {}), "anna").action is None
    assert import_from(opened, edited(opened, "coco", out, {row: before}), "anna").n_moved == 1
    assert opened.state.group[row] == 14


def test_earlier_names_of_categories_are_understood(opened, say, tmp_path):
    first = opened.predictions.categories[14].name
    say(opened, "name", cluster=14, name="Omega")
    name = ImageNames(opened.run.target).names[int(opened.state.rows_of(15)[0])]
    for label in ("Omega", first):
        file = tmp_path / "one.csv"
        file.write_text(f"path,category\n{name},{label}\n")
        done = import_from(opened, file, "anna")
        assert (done.n_moved, done.named) == ((1, ()) if label == "Omega" else (0, ()))


def test_spaces_around_a_name_are_ignored(opened, tmp_path):
    names, other = ImageNames(opened.run.target).names, opened.state.labels[14].name
    rows = [int(opened.state.rows_of(15)[place]) for place in (0, 1)]
    (tmp_path / "one.csv").write_text(f"path,label\n{names[rows[0]]}, {other} \n{names[rows[1]]},{other}\n")
    done = import_from(opened, tmp_path / "one.csv", "anna")
    assert (done.n_moved, done.named) == (2, ())
    assert opened.state.group[rows].tolist() == [14, 14]


def test_known_classes_without_images_can_be_chosen(opened, tmp_path):
    known = opened.known_classes[0]
    rows = opened.state.rows_of(0).tolist()
    name = ImageNames(opened.run.target).names
    lines = [f"{name[row]},{opened.state.labels[1].name}" for row in rows]
    (tmp_path / "one.csv").write_text("\n".join(["path,label", *lines]))
    import_from(opened, tmp_path / "one.csv", "anna")
    assert not opened.state.has(0)
    (tmp_path / "two.csv").write_text(f"path,label\n{name[int(opened.state.rows_of(14)[0])]},{known}\n")
    import_from(opened, tmp_path / "two.csv", "anna")
    assert opened.state.labels[0].name == known
    assert opened.state.rows_of(0).size == 1


def test_labels_are_refused_if_the_review_changed_while_they_were_compared(opened, say):
    row = int(opened.state.rows_of(14)[0])
    action = Relabel(source="labels.csv", placed=[Placed(cluster=16, name=None, rows=[row])])
    say(opened, "move", cluster=14, rows=[row], to=15)
    with pytest.raises(ConflictError, match="changed meanwhile"):
        opened.enter(action, "anna", base=0, request_id="a" * 16)
    assert opened.state.group[row] == 15


@pytest.mark.parametrize("label", ["a\u202eb", "x" * 121, "\t"])
def test_invalid_names_are_rejected(opened, label, tmp_path):
    name = ImageNames(opened.run.target).names[0]
    file = saved_json(tmp_path / "l.json", {"classes": None, "labels": {name: label}})
    with pytest.raises(JustrightError, match="cannot be the name of a category"):
        import_from(opened, file, "anna")


def test_damaged_export_record_is_replaced(opened, say, tmp_path, caplog):
    say(opened, "keep", cluster=14)
    exported(opened, "coco", tmp_path / "first")
    note = opened.folder / "exported.json"
    assert json.loads(note.read_text()) == {"coco": 1}
    note.write_text("[1")
    exported(opened, "coco", tmp_path / "second")
    assert "exported.json cannot be read" in caplog.text
    assert json.loads(note.read_text()) == {"coco": 1}


def test_a_read_only_run_is_exported_with_a_warning(opened, say, tmp_path, caplog, monkeypatch):
    say(opened, "keep", cluster=14)

    def refuse(path, value):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("justright.review.tools.write_json", refuse)
    assert exported(opened, "csv", tmp_path)[1].n_images == len(opened.predictions)
    assert "exported.json could not be written" in caplog.text


def test_an_export_that_fails_leaves_nothing(opened, tmp_path, monkeypatch):
    def fail(*_):
        raise DataError("no")

    monkeypatch.setattr(ImageSet, "encoded", fail)
    for to in ("coco", "cvat"):
        with pytest.raises(DataError):
            exported(opened, to, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_table_holds_no_copies(opened, tmp_path):
    with pytest.raises(DataError, match="holds no images"):
        exported(opened, "csv", tmp_path, is_copy=True)
