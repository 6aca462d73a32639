from __future__ import annotations

import csv
import json
import shutil
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import discover_words, invoke
from tests.review.acting import act

from justright.data import ImageSet, open_images
from justright.features import automatic
from justright.features.table import FeatureTable
from justright.review.export import label_table
from justright.review.open_review import OpenReview
from justright.runs.costs import CostPlan
from justright.runs.run_folder import RunFolder
from justright.runs.selection import load_selection


def test_one_command_makes_clusters_and_a_report_from_folders(run):
    out, result = run
    assert result["k_source"] == "given"
    assert 0 < result["scores"]["all"] <= 1
    assert (out / "report.html").exists()
    assert (out / "predictions.parquet").exists()


def test_predictions_csv_has_class_names_and_can_be_evaluated(run, split):
    out, result = run
    with (out / "predictions.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["path", "category", "kind", "confidence", "source"]
    known = set(open_images(split / "split" / "labeled.parquet").classes.values())
    assert {row["category"] for row in rows if row["kind"] == "known"} <= known
    assert "predictions.csv" in json.loads((out / "run.json").read_text())["files"]
    words = ["evaluate", str(out / "predictions.csv"), "--truth", str(split / "split" / "truth.parquet"), "--json"]
    done = invoke(words)
    assert json.loads(done.stdout)["scores"]["all"] == result["scores"]["all"]


def quick(split, out, *more) -> list[str]:
    """A run without training."""
    return [*discover_words(split, out)[:-12], "--method", "kmeans", "--no-report", "--json", "--out", str(out), *more]


def call(split, out, *more) -> tuple[dict, str]:
    done = invoke(quick(split, out, *more))
    return json.loads(done.stdout), done.stderr


def test_drop_copies_removes_labeled_images_in_the_target(split, tmp_path, home):
    leaked = ["--labeled", str(split / "hebrew")]  # all images, those of the target among them
    result, _ = call(split, tmp_path / "a", *leaked, "--drop-copies")
    assert result["n_copies"] == 22 * 8 - 11 * 4
    assert result["n_given"] == 0
    assert result["categories"]["known"] == 11, "half of the classes have no other image"
    done = invoke(quick(split, tmp_path / "b", *leaked), 1)
    assert "all 132 images of the target are labeled already" in done.output


def copied(split, tmp_path, n_a_class=2):
    """A folder of photos, and a folder of classes with copies of some of them: paths and classes of these."""
    photos, classes, given, images = tmp_path / "photos", tmp_path / "classes", {}, open_images(split / "hebrew")
    photos.mkdir()
    for label, name in images.classes.items():
        for number, row in enumerate(np.flatnonzero(images.labels == label).tolist()):
            path = f"{label:02d}-{number}.png"
            (photos / path).write_bytes(images.encoded(row))
            if number < n_a_class and len(given) < 10 * n_a_class:
                (classes / name).mkdir(parents=True, exist_ok=True)
                (classes / name / f"copy-{number}.png").write_bytes(images.encoded(row))
                given[path] = name
    return photos, classes, given


def kmeans_run(out, target, *more):
    words = ["discover", "--target", target, "--backbone", "glyph_vit", "--method", "kmeans", "--k", 22]
    return invoke([*words, "--out", out, "--no-report", "--json", *more])


def rows_of(out) -> dict[str, dict[str, str]]:
    with (out / "predictions.csv").open(encoding="utf-8") as file:
        return {row["path"]: row for row in csv.DictReader(file)}


@pytest.mark.parametrize("more", [(), ("--max-per-class", "1"), ("--held-out", "0.5"), ("--seeds", "2")])
def test_labeled_photos_keep_their_label(split, tmp_path, home, more):
    photos, classes, given = copied(split, tmp_path)
    done = kmeans_run(tmp_path / "run", photos, "--labeled", classes, *more)
    rows = rows_of(tmp_path / "run")
    assert len(rows) == 22 * 8
    assert {path: rows[path]["category"] for path in given} == given
    assert {(rows[path]["source"], rows[path]["kind"], float(rows[path]["confidence"])) for path in given} == {
        ("given", "known", 1.0)
    }
    assert {row["source"] for path, row in rows.items() if path not in given} == {"predicted"}
    result = json.loads(done.stdout)
    assert result["n_given"] == len(given)
    assert f"{len(given)} images of the target were labeled before, and keep that label" in result["notes"]


def test_photo_with_two_labels_is_unlabeled_and_noted(split, tmp_path, home):
    photos, classes, given = copied(split, tmp_path)
    one, other = sorted(set(given.values()))[:2]
    shutil.copy(classes / one / "copy-0.png", classes / other / "the same.png")
    done = kmeans_run(tmp_path / "run", photos, "--labeled", classes)
    (path,) = (path for path, row in rows_of(tmp_path / "run").items() if path in given and row["source"] != "given")
    assert given[path] == one
    (note,) = (note for note in json.loads(done.stdout)["notes"] if "which are not used" in note)
    assert f"{path} with {one} and {other}" in note


def test_labeled_sets_are_joined_without_duplicates(split, tmp_path, home):
    photos, classes, given = copied(split, tmp_path)
    labeled = split / "split" / "labeled.parquet"
    kmeans_run(tmp_path / "run", photos, "--labeled", classes, "--labeled", labeled)
    pool = RunFolder(tmp_path / "run").pool
    assert len(set(pool.ids)) == len(pool)
    expected = set(given.values()) | set(open_images(labeled).classes.values())
    assert set(pool.classes.values()) == expected


def test_preset_paper_is_one_option(split, tmp_path, home):
    result, _ = call(split, tmp_path / "run", "--pool", str(split / "italic"), "--preset", "paper")
    spec = json.loads((tmp_path / "run" / "run.json").read_text())["spec"]
    assert (spec["pool_role"], spec["select_labeled"], spec["selector"]) == ("rival", True, "beta")
    assert result["categories"]["known"] + result["categories"]["discovered"] > 22
    call(split, tmp_path / "cui", "--pool", str(split / "italic"), "--preset", "paper", "--selector", "cui")
    assert json.loads((tmp_path / "cui" / "run.json").read_text())["spec"]["selector"] == "cui"


def test_auto_explains_its_choice_and_diagnoses_once(split, tmp_path, home):
    with_auto = ("--pool", str(split / "italic"), "--selector", "auto")
    result, _ = call(split, tmp_path / "run", *with_auto)
    assert result["notes"][0].startswith("auto: Take ")
    path = tmp_path / "run" / "diagnosis.json"
    written = path.stat().st_mtime_ns
    assert json.loads(path.read_text())["winner"] in {"own", "none", "cui", "bins", "beta"}
    assert call(split, tmp_path / "run", *with_auto)[0]["notes"] == result["notes"]
    assert path.stat().st_mtime_ns == written
    done = invoke(quick(split, tmp_path / "run", *with_auto, "--alpha", "2"), 1)
    assert "--selector auto together with --alpha" in done.output


def test_auto_is_not_diagnosed_without_own_labels(split, tmp_path, home):
    images = ["--pool", split / "italic", "--target", split / "split" / "target.parquet", "--k", 22]
    options = ["--backbone", "glyph_vit", "--method", "kmeans", "--selector", "auto", "--no-report", "--json"]
    done = invoke(["discover", *images, *options, "--out", tmp_path / "run"])
    result = json.loads(done.stdout)
    assert "the diagnosis is not possible" in result["notes"][0]
    assert result["categories"] == {"known": 0, "discovered": 22}


def test_stages_read_earlier_files_and_resume_leaves_them_unchanged(split, tmp_path, home):
    sources = {name: split / "split" / f"{name}.parquet" for name in ("labeled", "target")}
    sources["italic"] = split / "italic"
    stores = {name: str(tmp_path / name) for name in sources}
    k, weights = str(tmp_path / "k.json"), tmp_path / "w.parquet"
    target = ("--target", stores["target"])
    for words in (
        *(["extract", str(sources[name]), "--backbone", "glyph_vit", "--out", stores[name]] for name in sources),
        ["estimate", stores["labeled"], *target, "--counter", "mixture", "--no-interval", "--out", k],
        ["select", stores["italic"], *target, "--selector", "random", "--out", str(weights)],
    ):
        invoke(words)
    read = [word for store in stores.values() for word in ("--features", store)]
    read += ["--pool", str(split / "italic"), "--k", k, "--weights", str(weights)]
    result, _ = call(split, tmp_path / "run", *read)
    folder = RunFolder(tmp_path / "run")
    assert result["n_target"] == json.loads((tmp_path / "k.json").read_text())["estimates"]["mixture"]["n_categories"]
    assert folder.selection.name == folder.about["selector"] == "given"
    given = load_selection(weights)
    assert folder.selection.weighed.classes["weight"].equals(given.classes["weight"])

    call(split, tmp_path / "run", *read)
    invoke(["select", stores["italic"], *target, "--selector", "cui", "--n-clusters", 9, "--out", weights])
    done = invoke(quick(split, tmp_path / "run", *read), 1)
    assert "weights.content: " in done.output
    done = invoke(quick(split, tmp_path / "run", *read, "--selector", "cui"), exit_code=None)
    assert "--weights together with --selector" in done.output


def test_resume_keeps_automatic_choices(split, tmp_path, home, monkeypatch):
    def chosen(name):
        return lambda *_: automatic.Choice(name, "it is here")

    words = [word for word in quick(split, tmp_path / "run") if word not in ("--backbone", "glyph_vit", "--json")]
    monkeypatch.setattr(automatic, "choose_backbone", chosen("glyph_vit"))
    monkeypatch.setattr(CostPlan, "message", lambda plan, *_: f"{plan.work.n_labeled} labeled images take long.")
    done = invoke(words)
    assert "Network: glyph_vit (it is here)." in done.stderr
    assert "44 labeled images take long." in done.stderr
    about = RunFolder(tmp_path / "run").about
    assert (about["spec"]["backbone"], about["request"]["network"]) == ("glyph_vit", "auto: it is here")
    monkeypatch.setattr(automatic, "choose_backbone", chosen("dinov2_vitb14"))
    monkeypatch.setattr(automatic, "choose_device", chosen("cuda"))
    done = invoke(words)
    assert "Network: glyph_vit (as before)." in done.stderr
    assert "take long" not in done.stderr, "only a new run estimates its time"


@pytest.mark.parametrize("more", [("--method", "kmeans"), ("--k", "22", "--epochs", "1", "--set", "views=2")])
def test_without_any_label_all_categories_are_new(split, tmp_path, home, more):
    words = ["discover", "--target", str(split / "hebrew"), "--backbone", "glyph_vit", "--out", str(tmp_path / "run")]
    done = invoke([*words, *more, "--json"])
    result = json.loads(done.stdout)
    assert result["images"] == 22 * 8
    assert result["categories"]["known"] == 0
    assert 2 <= result["categories"]["discovered"] <= 22 * 4
    assert {row["kind"] for row in rows_of(tmp_path / "run").values()} == {"discovered"}
    run = RunFolder(tmp_path / "run")
    assert "clusterings agree" in run.about["calibrated_on"]
    assert (tmp_path / "run" / "report.html").exists()
    if result["k_source"] != "given":
        low, high = run.count["estimates"][result["k_source"]]["interval"]
        assert low <= 22 <= high
        assert high >= 2 * low, "without labels the estimate is rough"
    invoke([*words, *more, "--json"])
    for later in (
        ["predict", str(tmp_path / "run"), str(split / "italic"), "--out", str(tmp_path / "found.csv")],
        ["report", str(tmp_path / "run"), "--out", str(tmp_path / "again.html")],
        ["review", str(tmp_path / "run"), "--export", str(tmp_path / "r.parquet"), "--as", "labeled", "--all"],
    ):
        invoke(later)


def test_unknown_setting_raises_with_the_known_ones(split, tmp_path):
    done = invoke([*discover_words(split, tmp_path / "run"), "--set", "nonsense=1"], 1)
    assert "no setting 'nonsense'" in done.output
    assert "learning_rate" in done.output


def test_rejected_run_does_not_change_the_truth(split, tmp_path, home):
    truth = str(split / "split" / "truth.parquet")
    call(split, tmp_path / "run", "--truth", truth)
    before = (tmp_path / "run" / "truth.parquet").read_bytes()
    other = tmp_path / "other.csv"
    other.write_text("path,label,is_old\nnowhere.png,1,true\n")
    done = invoke(quick(split, tmp_path / "run", "--truth", str(other), "--seed", "5"), 1)
    assert "seed: 0 before, 5 now" in done.output
    assert (tmp_path / "run" / "truth.parquet").read_bytes() == before


def test_resume_rejects_another_target(split, tmp_path, home):
    call(split, tmp_path / "run")
    other = ["--target", str(split / "italic")]
    done = invoke(quick(split, tmp_path / "run", *other), 1)
    assert "27 of 27 images in the target are not in" in done.output
    words = [word for word in quick(split, tmp_path / "run", *other) if not word.endswith(("--truth", "truth.parquet"))]
    done = invoke(words, 1)
    assert "holds other features" in done.output
    assert "--overwrite" not in done.output
    assert "another --out" in done.output


def test_split_writes_labeled_target_and_truth(split):
    labeled, target = (open_images(split / "split" / f"{part}.parquet") for part in ("labeled", "target"))
    assert len(labeled) + len(target) == 22 * 8
    assert len(labeled.classes) == 11
    assert set(target.labels.tolist()) == {-1}
    assert not set(labeled.paths) & set(target.paths)


def spoiled_folder(split, folder):
    """Photos of letters, three of them unreadable, a text file and a photo in HEIF."""
    folder.mkdir()
    for number, file in enumerate(sorted((split / "hebrew").rglob("*.png"))[::2]):
        (folder / f"foto ä{number}.png").write_bytes(file.read_bytes())
    (folder / "empty.jpg").write_bytes(b"")
    (folder / "text.jpg").write_text("hello")
    (folder / "torn.png").write_bytes((folder / "foto ä0.png").read_bytes()[:200])
    (folder / "notes.txt").write_text("hello")
    (folder / "phone.heic").write_bytes(b"")
    return folder


def test_one_unreadable_photo_and_other_settings_in_a_second_folder(split, tmp_path, home, monkeypatch):
    """The features are cached when the second run starts, which has to skip the same files."""
    monkeypatch.setattr("justright.data.folder.reads_heif", lambda: False)
    photos = spoiled_folder(split, tmp_path / "photos")
    options = ["--labeled", str(split / "italic"), "--target", str(photos), "--backbone", "glyph_vit", "--json"]
    for name, k in (("one", "12"), ("two", "14")):
        words = ["discover", *options, "--out", str(tmp_path / name), "--k", k, "--method", "kmeans"]
        done = invoke(words)
        result = json.loads(done.stdout)
        assert result["images"] == 88
        expected = {"not_recognised": 1, "no_heif": 1, "empty": 1, "not_an_image": 1, "truncated": 1}
        assert result["left_out"] == expected
        assert "3 unreadable (empty.jpg, text.jpg, torn.png)" in " ".join(result["notes"])
        assert str(tmp_path / name / "left_out.csv") in result["written"]
        assert "phone.heic" in (tmp_path / name / "report.html").read_text()
        assert "pip install 'justright[heif]'" in " ".join(result["notes"])


def test_target_without_readable_photos_raises(split, tmp_path, home):
    for part in ("bad", "empty"):
        (tmp_path / part).mkdir()
    (tmp_path / "bad" / "a.jpg").write_text("hello")
    options = ["--labeled", str(split / "italic"), "--backbone", "glyph_vit", "--out", str(tmp_path / "run")]
    for part, words in (
        ("bad", "no image of bad can be read, 1 of 1 are bad"),
        ("empty", "empty holds no images"),
    ):
        done = invoke(["discover", "--target", str(tmp_path / part), *options], 1)
        assert words in " ".join(done.output.split())
        assert "class folder" not in done.output


@pytest.fixture
def no_work(monkeypatch):
    """Fail where an image is read or features are computed."""

    def reached(*_, **__):
        raise AssertionError("work has begun")

    monkeypatch.setattr(ImageSet, "content_ids", reached)
    monkeypatch.setattr("justright.features.extract.extract", reached)
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--k", "5"], "--k counts known and new categories: at least 12 here"),
        (["--k", "5000"], "--k 5,000 for 132 images of the target and 11 known classes"),
        (["--method", "simgcd", "--k", "5000"], "--k 5,000 for 132 images"),
        (["--epochs", "2"], "kmeans does not train, so --epochs does not apply"),
        (["--minutes", "2"], "kmeans does not train, so --minutes does not apply"),
        (["--set", "views=2"], "kmeans does not train, so --set views does not apply"),
        (["--set", "n_init=0"], "n_init is 0"),
        (["--method", "simgcd", "--tensorboard"], "TensorBoard is not installed"),
        (["--tensorboard"], "--tensorboard does not apply"),
        (["--engine", "ray"], "Ray is not installed"),
        (["--truth", "LETTERS/other.csv"], "132 of 132 images in the target are not in"),
        (["--truth", "LETTERS/other.csv", "--target-has-labels"], "--truth together with --target-has-labels"),
        (["--truth", "nowhere.csv"], "There is no file nowhere.csv"),
        (["--features", "LETTERS/other.features"], "holds features that this run would not compute"),
        (["--features", "nowhere"], "no feature store: nowhere"),
        (["--checkpoint", "nowhere.pth"], "no such checkpoint"),
        (["--weights", "LETTERS/other.csv"], "has no column weight"),
        (["--selector", "beta", "--weighting", "hard"], "--weighting hard with --selector beta"),
        (
            ["--pool", "LETTERS/italic", "--selector", "cui", "--n-clusters", "133"],
            "132 target images for 133 clusters",
        ),
        (["--out", "LETTERS/other.csv/run"], "other.csv cannot be written"),
        (["--device", "cuda:77"], "cuda:77"),
    ],
)
def test_invalid_options_raise_before_images_are_read(split, tmp_path, home, no_work, words, message):
    (split / "other.csv").write_text("path,class_name\nnowhere.png,aleph\n")
    if not (split / "other.features").exists():
        FeatureTable.of(np.ones((3, 9), np.float32)).write(split / "other.features")
    words = [word.replace("LETTERS", str(split)) for word in words]
    done = invoke(quick(split, tmp_path / "run", *words), 1)
    assert message in done.output
    assert "Config" not in done.output
    assert not (tmp_path / "run").exists(), "no file is left"


def test_truth_needs_only_paths_and_class_names(run, split, tmp_path, home):
    """Old classes are those of the labeled images of the run."""
    truth = pq.read_table(split / "split" / "truth.parquet")
    rows = list(zip(truth["path"].to_pylist(), truth["class_name"].to_pylist(), strict=True))
    lines = [f"{path},{name}\n" for path, name in [*rows, ("unreadable.png", "aleph")]]
    (tmp_path / "truth.csv").write_text("path,class_name\n" + "".join(lines), encoding="utf-8")
    out, result = run
    done = invoke(["evaluate", str(out), "--truth", str(tmp_path / "truth.csv"), "--json"])
    assert json.loads(done.stdout)["scores"] == result["scores"]
    done = invoke(["evaluate", out, "--truth", tmp_path / "truth.csv"])
    assert "1 images of the truth are not in the run" in done.stderr
    done = invoke(["evaluate", f"{out}/predictions.csv", "--truth", str(tmp_path / "truth.csv")], 1)
    assert "has no column is_old" in done.output
    assert "the folder of a run" in done.output
    again, _ = call(split, tmp_path / "run", "--truth", str(tmp_path / "truth.csv"))
    assert again["scores"]["n_old"] == result["scores"]["n_old"] > 0
    assert pq.read_table(tmp_path / "run" / "truth.parquet").column_names == ["path", "class_name", "is_old"]


def test_too_many_unreadable_images_raise_with_an_existing_option(split, tmp_path, home):
    photos = tmp_path / "photos"
    shutil.copytree(split / "italic", photos)
    n_bad = 0
    for path in sorted(photos.rglob("*.png"))[::9]:
        path.write_bytes(b"no image")
        n_bad += 1
    words = ["discover", "--labeled", str(split / "hebrew"), "--target", str(photos), "--k", "30", "--no-report"]
    words += ["--backbone", "glyph_vit", "--method", "kmeans", "--out", str(tmp_path / "run"), "--json"]
    done = invoke(words, 1)
    assert "--max-bad of audit, discover, extract and predict" in done.output
    done = invoke([*words, "--max-bad", "0.2"])
    assert json.loads(done.stdout)["images"] == 27 - n_bad


def test_doubtful_labels_are_warned_about_and_noted(split, tmp_path, home):
    labeled = tmp_path / "own"
    shutil.copytree(split / "italic", labeled)
    first, second = sorted(path for path in labeled.rglob("*") if path.is_dir() and any(path.glob("*.png")))[:2]
    shutil.copy(next(iter(sorted(first.glob("*.png")))), second / "again.png")
    shutil.copytree(second, second.with_name(second.name + "\u200b"))
    for file in second.with_name(second.name + "\u200b").glob("*.png"):
        file.write_bytes(file.read_bytes() + b"\0")  # other images
    words = ["--labeled", str(labeled), "--target", str(split / "hebrew"), "--backbone", "glyph_vit", "--k", "60"]
    words += ["--method", "kmeans", "--no-report", "--out", str(tmp_path / "run")]
    done = invoke(["discover", *words])
    notes = json.loads((tmp_path / "run" / "run.json").read_text())["notes"]
    assert any(note.startswith("names of different classes differ only by case") for note in notes)
    assert any(note.startswith("1 labeled image has several classes, such as ") for note in notes)
    assert done.stderr.count("Warning: ") == 2


def next_round(out, labeled, target, *more) -> dict:
    words = ["discover", "--labeled", labeled, "--target", target, "--backbone", "glyph_vit", "--out", out]
    return json.loads(invoke([*words, "--method", "kmeans", "--no-report", "--json"]).stdout)


def estimate(run) -> int:
    return RunFolder(run).count["estimates"]["combined"]["n_categories"]


def reviewed_and_exported(run, n_clusters, to) -> dict[str, str]:
    """Keep the largest new clusters, name every other one, and export; the class of each image that was confirmed."""
    opened = OpenReview(RunFolder.open(run))
    new = [place for place, each in enumerate(opened.predictions.categories) if each.kind == "discovered"]
    sizes = opened.predictions.sizes
    for number, cluster in enumerate(sorted((each for each in new if sizes[each]), key=lambda each: -sizes[each])):
        if number == n_clusters:
            break
        named = {"do": "name", "cluster": cluster, "name": f"named {cluster}"}
        act(opened, **(named if number % 2 else {"do": "keep", "cluster": cluster}))
    invoke(["review", str(run), "--export", str(to), "--as", "labeled"])
    table = label_table(OpenReview(RunFolder.open(run))).to_pylist()
    return {row["path"]: row["class_name"] for row in table if row["status"] == "kept"}


def test_confirmed_labels_stay_in_later_rounds(split, tmp_path, home):
    photos, _, _ = copied(split, tmp_path)
    labeled = split / "split" / "labeled.parquet"
    first = next_round(tmp_path / "1", labeled, photos)
    confirmed = reviewed_and_exported(tmp_path / "1", 5, tmp_path / "reviewed.parquet")
    assert len(set(confirmed.values())) == 5
    old = set(open_images(labeled).classes.values())
    for number in (2, 3):
        result = next_round(tmp_path / str(number), tmp_path / "reviewed.parquet", photos)
        rows = rows_of(tmp_path / str(number))
        assert {path: rows[path]["category"] for path in confirmed} == confirmed
        assert {(rows[path]["source"], rows[path]["confidence"]) for path in confirmed} == {("given", "1")}
        names = [each.name for each in RunFolder(tmp_path / str(number)).predictions.categories]
        assert len(set(names)) == len(names), "a class that kept its name is no new cluster too"
        assert old | set(confirmed.values()) <= set(names[: result["categories"]["known"]])
        assert estimate(tmp_path / str(number)) == max(estimate(tmp_path / "1"), len(old | set(confirmed.values())))
        assert estimate(tmp_path / str(number)) <= result["n_target"] <= first["n_target"], "fewer are uncertain"
        confirmed |= reviewed_and_exported(tmp_path / str(number), 2, tmp_path / "reviewed.parquet")
