"""Exports read and rewritten by the labeling tools themselves, where they are installed.

pycocotools is installed for the tests. The others are too large for that, or want other releases of our packages.
"""

from __future__ import annotations

import json

import pytest

from justright.review.image_names import ImageNames
from justright.review.open_review import OpenReview
from justright.review.tools import export_to, import_from
from justright.runs.run_folder import RunFolder

pytestmark = pytest.mark.filterwarnings("ignore")  # of these programs


@pytest.fixture
def opened(run, photos):
    return OpenReview(RunFolder.open(run.path))


@pytest.fixture
def expected(opened):
    """The label and the confidence of each image, by name."""
    predictions = opened.predictions
    labels = [predictions.categories[cluster].name for cluster in predictions.cluster]
    pairs = zip(labels, predictions.confidence.tolist(), strict=True)
    return dict(zip(ImageNames(opened.run.target).names, pairs, strict=True))


def check_correction(opened, file, name, label):
    """One image of the file has another label now."""
    done = import_from(opened, file, "anna")
    assert (done.n_labels, done.n_moved) == (len(opened.predictions), 1)
    (row,) = ImageNames(opened.run.target).rows_of(name)
    assert opened.state.labels[int(opened.state.group[row])].name == label


def test_pycocotools_reads_every_annotation(opened, expected, tmp_path):
    coco = pytest.importorskip("pycocotools.coco", reason="pip install pycocotools")
    export_to(opened, "coco", tmp_path / "out")
    found = coco.COCO(str(tmp_path / "out" / "annotations" / "instances_default.json"))
    assert len(found.getAnnIds()) == len(found.getImgIds()) == len(expected)
    for annotation in found.loadAnns(found.getAnnIds()):
        (image,) = found.loadImgs(annotation["image_id"])
        (category,) = found.loadCats(annotation["category_id"])
        assert annotation["bbox"] == [0, 0, image["width"], image["height"]]
        label, confidence = expected[image["file_name"]]
        assert (category["name"], annotation["score"]) == (label, pytest.approx(confidence, abs=1e-6))
    first = found.dataset["annotations"][0]
    name = found.loadImgs(first["image_id"])[0]["file_name"]
    other = next(each for each in found.dataset["categories"] if each["id"] != first["category_id"])
    first["category_id"] = other["id"]
    (tmp_path / "back.json").write_text(json.dumps(found.dataset))
    check_correction(opened, tmp_path / "back.json", name, other["name"])


@pytest.mark.parametrize(("to", "form"), [("coco", "coco_instances"), ("cvat", "cvat")])
def test_datumaro_reads_and_writes_coco_and_cvat(opened, expected, tmp_path, to, form):
    datumaro = pytest.importorskip(
        "datumaro", reason="datumaro wants an older Pillow; install it elsewhere to run this"
    )
    export_to(opened, to, tmp_path / "out", is_copy=True)
    data = datumaro.Dataset.import_from(str(tmp_path / "out"), form)
    names = [each.name for each in data.categories()[datumaro.AnnotationType.label]]
    found = {item.id: item.annotations for item in data}
    assert set(found) == {name.removesuffix(".png") for name in expected}
    for name, (label, confidence) in expected.items():
        (annotation,) = found[name.removesuffix(".png")]
        text = annotation.attributes["score" if to == "coco" else "confidence"]
        assert (names[annotation.label], float(text)) == (label, pytest.approx(confidence, abs=1e-5))
    item = next(iter(data))
    other = next(place for place in range(len(names)) if place != item.annotations[0].label)
    data.put(item.wrap(annotations=[item.annotations[0].wrap(label=other)]))
    data.export(str(tmp_path / "back"), form, save_media=False)
    (file,) = (tmp_path / "back").rglob("*.json" if to == "coco" else "*.xml")
    check_correction(opened, file, f"{item.id}.png", names[other])


@pytest.mark.parametrize("form", ["JSON", "JSON_MIN", "CSV"])
def test_label_studio_round_trip(opened, expected, tmp_path, form):
    reason = "label-studio-sdk wants an older numpy; install it elsewhere to run this"
    interface = pytest.importorskip("label_studio_sdk.label_interface", reason=reason)
    converter = pytest.importorskip("label_studio_sdk.converter", reason=reason)
    out = tmp_path / "out"
    export_to(opened, "label-studio", out)
    config = (out / "labeling-config.xml").read_text(encoding="utf-8")
    tasks = json.loads((out / "tasks.json").read_text(encoding="utf-8"))
    described = interface.LabelInterface(config)
    described.validate()
    assert {task["data"]["path"] for task in tasks} == set(expected)
    for number, task in enumerate(tasks, start=1):
        (prediction,) = task["predictions"]
        assert described.validate_prediction(prediction, return_errors=True) == []
        annotation = {"id": number, "completed_by": 1, "result": prediction["result"], "was_cancelled": False,
                      "created_at": "", "updated_at": "", "lead_time": 1.0}  # fmt: skip
        task |= {"id": number, "annotations": [annotation]}
    value = tasks[0]["annotations"][0]["result"][0]["value"]
    other = next(label for label, _ in expected.values() if [label] != value["choices"])
    value["choices"] = [other]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    made = converter.Converter(config, str(tmp_path), download_resources=False)
    made.convert(str(tmp_path / "tasks.json"), str(tmp_path / "back"), form, is_dir=False)
    (file,) = (tmp_path / "back").iterdir()
    check_correction(opened, file, tasks[0]["data"]["path"], other)


def test_fiftyone_round_trip(opened, expected, tmp_path):
    fiftyone = pytest.importorskip("fiftyone", reason="fiftyone brings a database; install it to run this")
    export_to(opened, "fiftyone", tmp_path / "out")
    kind = fiftyone.types.FiftyOneImageClassificationDataset
    data = fiftyone.Dataset.from_dir(str(tmp_path / "out"), dataset_type=kind)
    root = tmp_path / "out" / "data"
    found = {sample.filepath.removeprefix(f"{root}/"): sample.ground_truth for sample in data}
    assert {name: each.label for name, each in found.items()} == {name: label for name, (label, _) in expected.items()}
    for name, (_, confidence) in expected.items():
        assert found[name].confidence == pytest.approx(confidence, abs=1e-6)
    sample = data.first()
    name = sample.filepath.removeprefix(f"{root}/")
    other = next(label for label, _ in expected.values() if label != sample.ground_truth.label)
    sample.ground_truth.label = other
    sample.save()
    data.export(str(tmp_path / "back"), dataset_type=kind, rel_dir=str(root), export_media=False)
    check_correction(opened, tmp_path / "back", name, other)
