from __future__ import annotations

import numpy as np
import pytest
from tests.features.tiny_extraction import run, tiny

from justright.data import ImageSet, open_images
from justright.features.store import StoreMismatchError
from justright.runs.problem import make_problem
from justright.runs.run_features import StoresAndCache, frozen_features
from justright.runs.spec import RunSpec
from justright.utils.context import use
from justright.utils.errors import DataError
from justright.utils.hashing import hash_bytes
from justright.utils.remote import place_of


@pytest.fixture
def sources(make_tree):
    """Folders of labeled images, of a pool and of photos; one photo cannot be read."""
    (make_tree({"": 6}, "photos", 20) / "5.png").write_bytes(b"no picture")
    return make_tree({"cat": 3}, "labeled"), make_tree({"oak": 2, "elm": 2}, "trees", 10), make_tree({}, "photos")


@pytest.fixture
def problem(sources):
    labeled, pool, target = map(open_images, sources)
    return make_problem([pool], labeled, target).without_copies()[0]


@pytest.fixture
def stores(sources, tmp_path):
    """A store of each source, written by `extract`."""
    paths = [tmp_path / f"{folder.name}.features" for folder in sources]
    for folder, path in zip(sources, paths, strict=True):
        run(open_images(folder), path, max_bad=0.5)
    return paths


@pytest.fixture
def features(problem, tmp_path, monkeypatch):
    """A function that returns the features of images, and for how many images they were computed."""
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))

    def compute(stores, images=None, name="t"):
        n_computed, backbone, images = [], tiny(), problem.target if images is None else images

        def count(steps, total, what):
            n_computed.extend([total] if what.startswith("extracting") else [])
            return steps

        cache = StoresAndCache(stores, backbone, [problem.pool.images, problem.target, images])
        with use(progress=count):
            return frozen_features(images, backbone, tmp_path / name, cache, 0.5, False), sum(n_computed)

    return compute


def test_stored_features_equal_computed_ones_in_run_order(problem, stores, features, tmp_path):
    for name, images in (("pool", problem.pool.images), ("target", problem.target)):
        stored, n_computed = features([stores[2], stores[0], stores[1]], images, name)
        computed = run(images, tmp_path / f"{name} 2", max_bad=0.5)
        np.testing.assert_array_equal(stored.features, computed.features)
        assert stored.index.equals(computed.index.replace_schema_metadata())
        assert stored.header.data == computed.header.data
        assert stored.quarantined == computed.quarantined
        assert n_computed == (name == "target"), "the image that cannot be read"


def test_remote_stores_work(sources, stores, features, tmp_path):
    there = [place_of(f"memory://{tmp_path.name}/{path.name}") for path in stores]
    for folder, place in zip(sources, there, strict=True):
        run(open_images(folder), place, max_bad=0.5)
    (here, _), (elsewhere, n_computed) = features(stores), features(there, name="elsewhere")
    np.testing.assert_array_equal(here.features, elsewhere.features)
    assert here.index.equals(elsewhere.index)
    assert n_computed == 1
    headers = sorted(hash_bytes((place / "store.json").read_bytes()) for place in there)
    assert RunSpec(features=tuple(there)).to_json()["features"] == headers


def test_missing_and_changed_images_are_computed(sources, stores, features, problem):
    whole, _ = features(stores)
    changed = sources[2] / "1.png"
    changed.write_bytes(changed.read_bytes() + b" ")
    opened = ImageSet(problem.target.table, problem.target.readers)  # without cached content ids
    result, n_computed = features(stores[2:], opened, "changed")
    np.testing.assert_allclose(result.features, whole.features, atol=1e-6)
    assert n_computed == 2, "the changed image, and the one that cannot be read"


def refused(problem, stores, backbone=None):
    with pytest.raises(DataError) as error:
        StoresAndCache(stores, backbone or tiny(), [problem.pool.images, problem.target])
    return str(error.value)


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
        StoresAndCache([tmp_path / "t"], tiny(), [problem.pool.images, problem.target])
