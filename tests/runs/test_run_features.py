from __future__ import annotations

import json

import numpy as np
import pytest
from tests.conftest import picture
from tests.features.tiny_extraction import run, tiny

from justright.data import ImageSet, open_images
from justright.features.store import StoreMismatchError
from justright.runs.problem import make_problem
from justright.runs.run_features import GivenStores
from justright.runs.spec import RunSpec
from justright.utils.errors import DataError
from justright.utils.hashing import hash_bytes
from justright.utils.remote import place_of


@pytest.fixture
def sources(make_tree):
    """Folders of labeled images, of a pool and of photos, one of which is no image."""
    (make_tree({"": 6}, "photos", 20) / "5.png").write_bytes(b"no picture")
    return make_tree({"cat": 3}, "labeled"), make_tree({"oak": 2, "elm": 2}, "trees", 10), make_tree({}, "photos")


@pytest.fixture
def problem(sources):
    labeled, pool, target = map(open_images, sources)
    return make_problem([pool], labeled, target).without_copies()[0]


@pytest.fixture
def stores(sources, tmp_path):
    """A store of each source, as three calls of extract leave them."""
    paths = [tmp_path / f"{folder.name}.features" for folder in sources]
    for folder, path in zip(sources, paths, strict=True):
        run(open_images(folder), path, max_bad=0.5)
    return paths


def test_copied_features_equal_computed_ones_in_run_order(problem, stores, tmp_path):
    backbone = tiny()
    sets = problem.pool.images, problem.target
    given = GivenStores([stores[2], stores[0], stores[1]], backbone, sets)
    for name, images in zip(("pool", "target"), sets, strict=True):
        copied, computed = given.copied(images, tmp_path / name), run(images, tmp_path / f"{name} 2", max_bad=0.5)
        np.testing.assert_array_equal(copied.features, computed.features)
        assert copied.index.equals(computed.index.replace_schema_metadata())
        assert copied.header.data == computed.header.data
        assert copied.quarantined == computed.quarantined
    assert backbone.n_batches == 0
    assert len(given.copied(problem.target, tmp_path / "target")) == 5, "it is found again"


def test_remote_stores_work(problem, sources, stores, tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    there = [place_of(f"memory://{tmp_path.name}/{path.name}") for path in stores]
    for folder, place in zip(sources, there, strict=True):
        run(open_images(folder), place, max_bad=0.5)
    backbone, sets = tiny(), (problem.pool.images, problem.target)
    here, elsewhere = GivenStores(stores, backbone, sets), GivenStores(there, backbone, sets)
    for name, images in zip(("pool", "target"), sets, strict=True):
        copies = [given.copied(images, tmp_path / f"{name} {i}") for i, given in enumerate((here, elsewhere))]
        np.testing.assert_array_equal(copies[0].features, copies[1].features)
        assert copies[0].index.equals(copies[1].index)
    assert backbone.n_batches == 0
    headers = sorted(hash_bytes((place / "store.json").read_bytes()) for place in there)
    assert RunSpec(features=tuple(there)).to_json()["features"] == headers


def test_copied_store_names_its_origins(problem, stores, tmp_path):
    given = GivenStores(stores, tiny(), [problem.pool.images, problem.target])
    header = given.copied(problem.target, tmp_path / "t").header
    (origin,) = header.computation["copied_from"]
    store = json.loads((stores[2] / "store.json").read_text())
    assert origin == store["computation"] | {"content": store["data"]["content"]}


def test_set_without_features_is_computed(problem, stores, tmp_path):
    given = GivenStores(stores[2:], tiny(), [problem.pool.images, problem.target])
    assert given.copied(problem.pool.images, tmp_path / "p") is None


def refused(problem, stores, backbone=None):
    sets = [ImageSet(images.table, images.readers) for images in (problem.pool.images, problem.target)]  # opened anew
    with pytest.raises(DataError) as error:
        GivenStores(stores, backbone or tiny(), sets)
    return str(error.value)


def test_partial_features_are_rejected(problem, stores):
    assert "lack 4 of 7 images of target, trees, such as elm/0.png" in refused(problem, [stores[0], stores[2]])


def test_changed_image_counts_as_missing(sources, stores, problem):
    (sources[2] / "1.png").write_bytes((sources[2] / "2.png").read_bytes() + b" ")
    assert "lack 1 of 6 images of photos, such as 1.png" in refused(problem, stores)


def test_store_of_other_images_is_rejected(problem, stores, make_tree, tmp_path):
    run(open_images(make_tree({"dog": 2}, "others", 90)), tmp_path / "others.features")
    text = refused(problem, [*stores, tmp_path / "others.features"])
    assert "others.features holds no image of this run" in text


def test_other_backbone_settings_are_rejected_with_a_diff(problem, stores, sources, tmp_path):
    assert "backbone.fingerprint: " in refused(problem, stores, tiny(seed=1))
    assert "transform.resize: 18, 20" in refused(problem, stores, tiny(resize=20))
    run(open_images(sources[2]), tmp_path / "half", max_bad=0.5, precision="bfloat16")
    text = refused(problem, [tmp_path / "half"])
    assert "computation.precision: bfloat16, float32" in text
    assert "dtype: float16, float32" in text


def test_stores_with_given_ids_are_rejected(problem, sources, tmp_path):
    images = open_images(sources[0])
    renamed = ImageSet(images.table.set_column(0, "id", [["a", "b", "c"]]), images.readers)
    run(renamed, tmp_path / "t")
    with pytest.raises(StoreMismatchError, match="ids from a list"):
        GivenStores([tmp_path / "t"], tiny(), [problem.pool.images, problem.target])


def test_bad_images_are_identified_by_content_not_path(make_tree, tmp_path):
    """Nor is an image of a store left out because one of another store has its path and cannot be read."""
    roots = [make_tree({"": 6}, name, first) for name, first in (("morning", 20), ("evening", 40))]
    (roots[0] / "5.png").write_bytes(b"no picture")
    target = ImageSet.concat([open_images(root).named("photos") for root in roots])
    problem = make_problem([], open_images(make_tree({"cat": 3}, "labeled")), target)
    paths = [tmp_path / f"{root.name}.features" for root in roots]
    for root, path in zip(roots, paths, strict=True):
        run(open_images(root), path, max_bad=0.5)
    given = GivenStores(paths, tiny(), [problem.pool.images, problem.target])
    copied = given.copied(problem.target, tmp_path / "t")
    assert list(copied.bad_rows) == [5]
    assert len(copied) == 11
    picture(99).save(roots[1] / "5.png")
    assert "lack 1 of 12 images of photos, such as 5.png" in refused(problem, paths)
