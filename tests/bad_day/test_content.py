"""Given ids are not trusted: stored features are reused only for images with the same content."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests.discovery.tiny import backbone_of_noise, config_of, drawn_images, learned

from justright.data import ImageSet, Split, open_images
from justright.data.readers import FolderReader
from justright.discovery.methods import METHODS
from justright.runs.problem import make_problem
from justright.runs.run import Run
from justright.runs.spec import RunSpec
from justright.utils.errors import DataError

torch.set_num_threads(1)

OLD, NEW = (0, 1), (2, 3)
TRAINED = ["kmeans", "simgcd"]


@pytest.fixture
def backbone():
    return backbone_of_noise()


def manifest(folder: Path, seed: int, per_class: int = 6) -> Path:
    """A list of drawn images on disk whose ids are 0, 1, ... whatever the images are."""
    labels = [label for label in (*OLD, *NEW) for _ in range(per_class)]
    folder.mkdir(parents=True)
    lines = ["path,id,label"]
    for row, label in enumerate(labels):
        lines.append(f"{row}.png,{row},{label}")
    write_images(folder, seed, per_class)
    (folder / "list.csv").write_text("\n".join(lines) + "\n")
    return folder / "list.csv"


def write_images(folder: Path, seed: int, per_class: int = 6) -> None:
    drawn = drawn_images([label + 10 * seed for label in (*OLD, *NEW) for _ in range(per_class)], seed=seed)
    for row in range(len(drawn)):
        drawn.image(row).save(folder / "half-written.png")
        (folder / "half-written.png").replace(folder / f"{row}.png")  # another thread may be reading


def split_of(file: Path) -> Split:
    """Half of the images of old classes are labeled."""
    images = open_images(file)
    rows = np.arange(len(images))
    is_labeled = np.isin(images.labels, OLD) & (rows % 2 == 0)
    labeled, target = images.take(rows[is_labeled]), images.take(rows[~is_labeled])
    return Split(labeled, target.without_labels(), None)


def result(method) -> list[np.ndarray]:
    return [method.labels_, method.confidence_, method.features_]


def assert_equal(first, second) -> None:
    for one, other in zip(result(first), result(second), strict=True):
        np.testing.assert_array_equal(one, other)


def differs(first, second) -> bool:
    return not np.array_equal(first.features_, second.features_)


@pytest.mark.parametrize("name", TRAINED)
def test_same_ids_of_two_lists_do_not_share_views(tmp_path, backbone, name):
    lists = [manifest(tmp_path / str(seed), seed) for seed in (1, 2)]
    assert open_images(lists[0]).ids == open_images(lists[1]).ids == [str(row) for row in range(24)]
    first, second = (learned(name, split_of(file), backbone, tmp_path / "shared", n=4) for file in lists)
    alone = learned(name, split_of(lists[1]), backbone, tmp_path / "alone", n=4)
    assert_equal(second, alone)
    assert differs(first, second)


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("is_opened_again", [True, False])
def test_changed_files_are_read_again(tmp_path, backbone, name, is_opened_again):
    file = manifest(tmp_path / "images", 1)
    split = split_of(file)
    named = Split(split.labeled.with_ids(), split.unlabeled.with_ids(), None)
    before = learned(name, named, backbone, tmp_path / "shared", n=4)
    write_images(file.parent, 2)
    after = learned(name, split_of(file) if is_opened_again else named, backbone, tmp_path / "shared", n=4)
    assert_equal(after, learned(name, split_of(file), backbone, tmp_path / "alone", n=4))
    assert differs(before, after)


def test_saved_split_uses_current_images(tmp_path, backbone):
    file = manifest(tmp_path / "images", 1)
    (tmp_path / "split").mkdir()
    for part in ("labeled", "unlabeled"):
        getattr(split_of(file), part).with_ids().save(tmp_path / "split" / f"{part}.parquet")

    def saved() -> Split:
        return Split(*(open_images(tmp_path / "split" / f"{part}.parquet") for part in ("labeled", "unlabeled")), None)

    learned("kmeans", saved(), backbone, tmp_path / "shared", n=4)
    write_images(file.parent, 2)
    after = learned("kmeans", saved(), backbone, tmp_path / "shared", n=4)
    assert_equal(after, learned("kmeans", saved(), backbone, tmp_path / "alone", n=4))


def test_training_resume_rejects_other_images_with_same_ids(tmp_path, backbone):
    lists = [manifest(tmp_path / str(seed), seed) for seed in (1, 2)]
    learned("simgcd", split_of(lists[0]), backbone, tmp_path / "bank", tmp_path / "run", n=4)
    with pytest.raises(DataError, match=r"data\.target_images"):
        learned("simgcd", split_of(lists[1]), backbone, tmp_path / "bank", tmp_path / "run", n=4)


def test_training_resumes_if_only_ids_changed(tmp_path, backbone):
    file = manifest(tmp_path / "images", 1)
    first = learned("simgcd", split_of(file), backbone, tmp_path / "bank", tmp_path / "run", n=4)
    file.write_text(file.read_text().replace(".png,", ".png,my-"))
    again = learned("simgcd", split_of(file), backbone, tmp_path / "bank", tmp_path / "run", n=4)
    assert_equal(first, again)
    banks = [path for path in (tmp_path / "bank").iterdir() if path.is_dir()]
    assert len(banks) == 2  # plain and weak views, each once


def test_predictions_keep_given_ids(tmp_path, backbone):
    split = split_of(manifest(tmp_path / "images", 1))
    method = METHODS["kmeans"](4, backbone, config_of("kmeans"), bank=tmp_path / "bank").fit(split)
    assert method.predictions(split.unlabeled).ids == split.unlabeled.ids


def test_duplicates_are_found_by_content(tmp_path):
    file = manifest(tmp_path / "images", 1)
    (file.parent / "labeled.csv").write_text("path,id,label\n0.png,a,0\n1.png,b,0\n")
    (tmp_path / "other").mkdir()
    Image.new("RGB", (16, 16)).save(tmp_path / "other" / "0.png")
    (tmp_path / "other" / "list.csv").write_text("path,id,label\n0.png,2,0\n")  # the id of an image of the target
    labeled = ImageSet.concat([open_images(file.parent / "labeled.csv"), open_images(tmp_path / "other" / "list.csv")])
    problem, copies = make_problem([], labeled, open_images(file)).without_copies()
    assert copies.n_left_out == 2
    assert problem.pool.images.ids == ["2"]


def test_run_resume_rejects_other_images_with_same_ids(tmp_path, backbone, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    spec = RunSpec(method="kmeans", selector="none", scale="small", backbone="tiny", n_target=4, settings={"n_init": 2})

    def run(file: Path, out: str):
        split = split_of(file)
        return Run(make_problem([], split.labeled, split.unlabeled), spec, tmp_path / out, backbone).all()

    lists = [manifest(tmp_path / str(seed), seed) for seed in (1, 2)]
    first, second = run(lists[0], "first"), run(lists[1], "second")
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "another home"))
    alone = run(lists[1], "alone")
    np.testing.assert_array_equal(second.predictions.cluster, alone.predictions.cluster)
    np.testing.assert_array_equal(second.tuned, alone.tuned)
    assert not np.array_equal(first.tuned, second.tuned)
    assert second.predictions.ids == split_of(lists[1]).unlabeled.ids
    with pytest.raises(DataError, match=r"data\.content"):
        run(lists[0], "second")


def test_images_changed_during_extraction_raise(tmp_path, backbone, monkeypatch):
    split = split_of(manifest(tmp_path / "images", 1))
    read, n_reads = FolderReader.image, []

    def changing(self, path):
        n_reads.append(path)
        if len(n_reads) == 5:
            write_images(tmp_path / "images", 2)
        return read(self, path)

    monkeypatch.setattr(FolderReader, "image", changing)
    with pytest.raises(DataError, match="images changed while their views were computed"):
        learned("kmeans", split, backbone, tmp_path / "bank", n=4)
    assert not list((tmp_path / "bank").rglob("rows*.npy"))


def test_fit_opens_an_image_once_per_set_of_views(tmp_path, backbone, monkeypatch):
    split = split_of(manifest(tmp_path / "images", 1))
    read, opened = FolderReader.encoded, []

    def noted(self, path):
        opened.append(path)
        return read(self, path)

    monkeypatch.setattr(FolderReader, "encoded", noted)
    learned("simgcd", split, backbone, tmp_path / "bank", n=4)
    assert {opened.count(path) for path in set(opened)} == {3}  # the id, the plain view, the views of training
