"""The main job as one Python call, on every kind of source."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from click.testing import CliRunner

import justright
from justright.cli import main
from justright.data import glyph_set, open_images
from justright.data.vectors import class_names
from justright.utils.context import use
from justright.utils.errors import JustrightError

QUICK = {"backbone": "glyph_vit", "device": "cpu", "method": "kmeans", "k": 6, "progress": False}


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A folder with three labeled classes, and one with unlabeled images of these and of three others."""
    root = tmp_path_factory.mktemp("photos")
    images = glyph_set(per_class=6, scripts=("hebrew",))
    names = [images.classes[label] for label in images.labels.tolist()]
    for label, name in enumerate(sorted(images.classes.values())[:6]):
        for number, row in enumerate(np.flatnonzero([each == name for each in names]).tolist()):
            is_labeled = label < 3 and number < 3
            folder = root / "labeled" / name if is_labeled else root / "target"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{label}-{number}.png").write_bytes(images.encoded(row))
    return root


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUSTRIGHT_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="module")
def result(photos, tmp_path_factory, home):
    out = tmp_path_factory.mktemp("out") / "run"
    return justright.discover(str(photos / "target"), labeled=photos / "labeled", out=out, **QUICK)


def test_predictions_have_one_row_for_each_image(result, photos):
    frame = result.predictions
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["path", "category", "kind", "confidence", "source"]
    assert sorted(frame["path"]) == sorted(path.name for path in (photos / "target").iterdir())
    assert set(frame["kind"]) <= {"known", "discovered"}
    assert frame["confidence"].between(0, 1).all()


def test_result_has_a_summary(result):
    assert result.n_categories == 6
    assert len(result.clusters) == 6
    assert result.clusters["images"].sum() == len(result.predictions)
    assert result.expected_right.n == len(result.predictions)
    assert "27 images in 6 categories" in repr(result)
    assert "We expect" in repr(result)
    assert "data:image" in result._repr_html_()
    assert result.scores is None
    assert isinstance(result.notes, list)


def test_result_is_reopened(result):
    again = justright.Result.open(result.path)
    pd.testing.assert_frame_equal(again.predictions, result.predictions)


def test_other_images_are_predicted(result, photos, tmp_path, home):
    shutil.copy(next((photos / "labeled").rglob("*.png")), tmp_path / "new.png")
    frame = result.predict(tmp_path, device="cpu", progress=False)
    assert list(frame["path"]) == ["new.png"]
    assert frame["source"][0] == "given", "it is a labeled image of the run"


def test_report_may_go_into_a_folder(result, tmp_path):
    assert result.report(tmp_path) == tmp_path / "report.html"


def test_result_takes_a_path(result):
    assert repr(justright.Result(result.path)) == repr(result)


def test_out_must_be_a_folder(photos, tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(JustrightError, match="out is the file"):
        justright.discover(photos / "target", out=tmp_path / "run", **QUICK)


def test_report_is_one_page(result, tmp_path):
    assert result.report(tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!")


def categories(result):
    return sorted(zip(result.predictions["category"], result.predictions["confidence"], strict=True))


def test_every_kind_of_source_has_the_same_result(result, photos, tmp_path, home):
    files = sorted((photos / "target").iterdir())
    labeled = sorted((photos / "labeled").rglob("*.png"))
    frame = pd.DataFrame({"path": map(str, labeled), "label": [path.parent.name for path in labeled]})
    by_class = {folder.name: sorted(folder.iterdir()) for folder in (photos / "labeled").iterdir()}
    sources = {
        "list and dict": (list(map(str, files)), by_class),
        "frame": (pd.DataFrame({"path": map(str, files)}), frame),
        "arrow": (pa.table({"path": list(map(str, files))}), pa.Table.from_pandas(frame)),
        "image sets": (open_images(photos / "target"), open_images(photos / "labeled")),
        "pairs": (files, [(str(path), path.parent.name) for path in labeled]),
    }
    for number, (target, labels) in enumerate(sources.values()):
        other = justright.discover(target, labels, out=tmp_path / str(number), **QUICK)
        assert categories(other) == categories(result), list(sources)[number]


def test_datasets_in_memory_are_sources(photos, tmp_path, home):
    import datasets

    labeled = datasets.load_dataset(
        "imagefolder", data_dir=str(photos / "labeled"), split="train", cache_dir=str(tmp_path / "hf")
    )
    value = justright.discover(photos / "target", labeled, out=tmp_path / "run", **QUICK)
    assert (value.clusters["kind"] == "known").sum() == 3


def test_run_without_a_folder_keeps_its_files(photos, home, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    value = justright.discover(photos / "target", **QUICK)
    assert value.path.is_relative_to(tmp_path)
    assert (value.path / "predictions.csv").exists()


def test_second_call_resumes_and_rejects_other_settings(result, photos, home):
    again = justright.discover(photos / "target", labeled=photos / "labeled", out=result.path, **QUICK)
    pd.testing.assert_frame_equal(again.predictions, result.predictions)
    with pytest.raises(JustrightError, match="seed"):
        justright.discover(photos / "target", labeled=photos / "labeled", out=result.path, **QUICK, seed=1)


def test_run_overwrites_no_file_of_others(photos, home, tmp_path):
    target = shutil.copytree(photos / "target", tmp_path / "photos")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "predictions.csv").write_text("mine")
    for out, message in ((target, "is a folder of images of this run"), (tmp_path / "mine", "holds predictions.csv")):
        before = sorted(out.iterdir())
        with pytest.raises(JustrightError, match=message):
            justright.discover(target, out=out, **QUICK)
        assert sorted(out.iterdir()) == before


def test_run_may_lie_inside_its_target(photos, home, tmp_path):
    target = shutil.copytree(photos / "target", tmp_path / "photos")
    for _ in range(2):
        value = justright.discover(target, out=target / "run", **QUICK)
        assert not value.run.left_out


def test_progress_and_messages_reach_the_caller(photos, tmp_path, home):
    seen, messages = [], []

    def progress(steps, total, what):
        seen.append(what)
        yield from steps

    with use(progress=progress, message=messages.append):
        justright.discover(photos / "target", out=tmp_path / "run", **QUICK | {"progress": True, "device": "auto"})
    assert seen
    assert any(message.startswith("Device: ") for message in messages)


def test_importing_justright_imports_nothing_heavy():
    code = "import sys, justright; justright.discover; print(sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in ("'torch'", "'timm'", "'sklearn'", "'pandas'"):
        assert heavy not in out


@pytest.fixture(scope="module")
def blobs():
    """Six clusters of vectors: labeled rows of three of them with their labels, and the target."""
    chance = np.random.default_rng(0)
    centers = 6 * chance.normal(size=(6, 16))
    labels = np.repeat(np.arange(6), 30)
    rows = (centers[labels] + chance.normal(size=(180, 16))).astype(np.float32)
    is_labeled = (labels < 3) & (np.arange(180) % 3 == 0)
    return rows[~is_labeled], rows[is_labeled], labels[is_labeled], labels[~is_labeled]


HEADS = {"device": "cpu", "progress": False, "k": 6, "epochs": 3, "settings": {"heads_first": 20}}


@pytest.mark.parametrize("method", ["simgcd", "gcd", "kmeans"])
def test_given_features_are_clustered(blobs, tmp_path, home, method):
    target, labeled, labels, truth = blobs
    options = HEADS | {"method": method}
    if method != "simgcd":
        del options["settings"]
    if method == "kmeans":
        del options["epochs"]
    value = justright.discover_features(target, labeled, [f"kind {each}" for each in labels], out=tmp_path, **options)
    numbers = value.predictions["category"].astype("category").cat.codes.to_numpy().astype(np.int64)
    assert justright.evaluate(truth, numbers, truth < 3).all > 0.9
    assert {"kind 0", "kind 1", "kind 2"} <= set(value.predictions["category"])
    assert value.expected_right.n == len(target)
    again = justright.Result.open(tmp_path).predict(target[:5] + 1e-3, device="cpu", progress=False)
    assert list(again["category"]) == list(value.predictions["category"][:5])
    assert "data:image" in value._repr_html_()


KMEANS = {"device": "cpu", "progress": False, "k": 6, "method": "kmeans"}


def test_true_labels_of_features_are_scored(blobs, tmp_path, home):
    target, labeled, labels, truth = blobs
    value = justright.discover_features(target, labeled, labels, target_labels=truth, out=tmp_path, **KMEANS)
    again = justright.evaluate(truth, value.predictions["category"], truth < 3)
    assert (value.scores.all, value.scores.old, value.scores.new) == (again.all, again.old, again.new)


@pytest.mark.parametrize("label", [None, -1, float("nan"), "", [0], [1.0, 0.0, 0.0]])
def test_a_row_without_a_class_is_rejected(blobs, tmp_path, label):
    target, labeled, labels, _ = blobs
    with pytest.raises(JustrightError, match=r"no label|has the label"):
        justright.discover_features(target, labeled, [label, *labels.tolist()[1:]], out=tmp_path / "run", **KMEANS)


def test_numbers_of_classes_are_equal_in_every_form():
    expected = ["0", "2", "1"]
    for labels in (
        [0, 2, 1],
        [0.0, 2.0, 1.0],
        torch.tensor([0, 2, 1]),
        list(torch.tensor([0, 2, 1])),
        pd.Series([0, 2, 1]),
    ):
        assert class_names(labels, "rows") == expected


@pytest.mark.parametrize(("name", "value"), [("backbone", "glyph_vit"), ("checkpoint", "x.pth"), ("img_size", 224)])
def test_options_of_images_are_rejected_with_features(blobs, tmp_path, name, value):
    with pytest.raises(JustrightError, match=f"{name} together with features that were given"):
        justright.discover_features(blobs[0], out=tmp_path / "run", **KMEANS, **{name: value})


def test_features_must_be_arrays_of_the_length_of_the_run(blobs, tmp_path, home):
    value = justright.discover_features(blobs[0], out=tmp_path / "run", **KMEANS)
    with pytest.raises(JustrightError, match="vectors of 8 numbers\nExpected: 16"):
        value.predict(blobs[0][:, :8], progress=False)
    with pytest.raises(JustrightError, match=r"vectors is the path rows\.npy"):
        value.predict("rows.npy", progress=False)


def test_pool_of_given_features_guides(blobs, tmp_path, home):
    target, labeled, labels, _ = blobs
    pool = np.random.default_rng(1).normal(size=(40, 16)) + 20
    options = HEADS | {"method": "simgcd", "selector": "beta"}
    value = justright.discover_features(target, labeled, labels, pool, ["far", "farther"] * 20, out=tmp_path, **options)
    assert not any("far" in name for name in value.clusters["category"])


def test_features_of_images_may_be_given(photos, result, tmp_path, home, blobs):
    files = sorted((photos / "target").iterdir())
    rows = np.random.default_rng(0).normal(size=(len(files), 8))
    np.save(tmp_path / "rows.npy", rows)
    options = QUICK | {"backbone": "auto", "k": 3}
    one = justright.discover(files, features=[tmp_path / "rows.npy"], out=tmp_path / "one", **options)
    other = justright.discover(files, features=rows, out=tmp_path / "other", **options)
    assert list(one.predictions["path"]) == list(map(str, files))
    assert categories(one) == categories(other)
    with pytest.raises(JustrightError, match="8 rows of features for 27 images"):
        justright.discover(files, features=rows[:8], out=tmp_path / "third", **options)
    done = CliRunner().invoke(
        main, ["predict", str(one.path), str(photos / "target"), "--out", str(tmp_path / "p.csv")]
    )
    assert done.exit_code == 1
    assert "a run on features that were given, and these are images" in " ".join(done.output.split())


def test_bad_features_are_rejected(blobs, tmp_path):
    target, labeled, labels, _ = blobs
    spoiled = target.copy()
    spoiled[3, 2] = np.nan
    for rows, own, names, problem in (
        (spoiled, labeled, labels, r"NaN or infinite values in 1 of \d+ rows \(row 3\)"),
        (target[0], labeled, labels, "of shape"),
        (target, labeled, labels[1:], "19|labels for"),
        (target, labeled, None, "only one of"),
    ):
        with pytest.raises(JustrightError, match=problem):
            justright.discover_features(rows, own, names, out=tmp_path / "run", **HEADS)
