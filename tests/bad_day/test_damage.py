"""Damage to any file of a run, a bank or a cache: the same result, or refused by name, or made again and noted."""

from __future__ import annotations

import logging
import shutil
from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.discovery.tiny import backbone_of_noise, drawn_images

from justright.discovery.learner import trainable_copy
from justright.discovery.model_files import read_model
from justright.features.backbone import Backbone
from justright.runs.problem import Problem, make_problem
from justright.runs.run import Run
from justright.runs.run_folder import RunFolder
from justright.runs.spec import RunSpec
from justright.utils.errors import JustrightError
from justright.utils.hashing import hash_value

torch.set_num_threads(1)

SIMGCD = {"n_epochs": 2, "batch_size": 8, "hidden_dim": 16, "out_dim": 8, "views": 2}
FILES = [
    "run.json",
    "target.parquet",
    "pool.parquet",
    "weights.parquet",
    "weights.classes.parquet",
    "count.json",
    "metrics.jsonl",
    "tuned.npy",
    "predictions.parquet",
    "truth.parquet",
    "scores.json",
    "doubts.json",
    "model.json",
    "model.safetensors",
    *(f"{part}.features/{name}" for part in ("pool", "target")
      for name in ("store.json", "features.npy", "index.parquet", "quarantine.json")),
]  # fmt: skip
STORED = {
    "bank": "banks/*/*.block",
    "key of a bank": "banks/*/key.json",
    "cached features": "features/*/*.block",
    "key of the cache": "features/*/key.json",
}


@cache
def problem_of(seed: int) -> Problem:
    target = drawn_images([label for label in range(4) for _ in range(6)], "target", seed)
    own = drawn_images([label for label in range(2) for _ in range(5)], "own", seed + 100)
    other = drawn_images([label for label in (20, 21, 22) for _ in range(5)], "other", seed + 200)
    return make_problem([other], own, target, has_labels=True)


def run_of(out: Path, backbone: Backbone, method: str = "kmeans", seed: int = 0) -> RunFolder:
    settings = SIMGCD if method == "simgcd" else {"n_init": 2}
    spec = RunSpec(method=method, selector="beta", scale="small", backbone="tiny", settings=settings,
                   counter="labeled-search", selector_params={"domain": "affine"}, n_resamples=2,
                   answer="joint")  # fmt: skip
    return Run(problem_of(seed), spec, out, backbone).all()


@pytest.fixture(scope="module")
def backbone():
    return backbone_of_noise()


@pytest.fixture(scope="module")
def read_into(backbone):
    """A network that models are read into: each reading replaces all that was tuned."""
    return trainable_copy(backbone)


@pytest.fixture(scope="module", params=["kmeans", "simgcd"])
def method(request):
    return request.param


@pytest.fixture(scope="module")
def finished(tmp_path_factory, backbone, method):
    """A finished run, beside the home that it filled and a run of other images."""
    place = tmp_path_factory.mktemp(method)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUSTRIGHT_HOME", str(place / "home"))
        run_of(place / "run", backbone, method)
        patch.setenv("JUSTRIGHT_HOME", str(place / "other home"))
        run_of(place / "other", backbone, method, seed=1)
    return place


@pytest.fixture(autouse=True)
def expect_file(request, method):
    """Skip what a method does not write."""
    if method == "kmeans" and request.node.callspec.params.get("name") == "metrics.jsonl":
        pytest.skip("k-means has no epochs")


@pytest.fixture
def copied(finished, tmp_path, monkeypatch):
    shutil.copytree(finished / "run", tmp_path / "run")
    shutil.copytree(finished / "home", tmp_path / "home")
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    return tmp_path


def damages(good: bytes, other: bytes) -> dict[str, bytes]:
    """The bytes of a file after one of many things happened to it."""
    found = {"truncated": good[: len(good) * 2 // 3], "empty": b"", "of another run": other}
    middle = max(0, len(good) // 2 - 2048)
    found["zeros"] = good[:middle] + bytes(len(good[middle : middle + 4096])) + good[middle + 4096 :]
    for place in np.random.default_rng(len(good)).integers(0, max(1, len(good)), 20 if good else 0).tolist():
        found[f"bit at {place}"] = good[:place] + bytes([good[place] ^ (1 << place % 8)]) + good[place + 1 :]
    return {name: data for name, data in found.items() if data != good}


def everything(path: Path, read_into: Backbone) -> str:
    """All that a run says to those who read it, as one fingerprint."""
    run = RunFolder.open(path)
    pool, target = run.frozen
    _, assigner, joint, about = read_model(path, read_into)
    truth = run.truth_file
    facts = [
        {name: value for name, value in run.about.items() if name != "files"},
        {name: part.tolist() for name, part in joint.tensors().items()},
        [asdict(doubt) for doubt in run.doubts],
        run.count, run.diagnosis, run.metrics, run.scores.to_dict(), about, assigner.vectors.tolist(),
        [images.encoded(row).hex() for images in (run.target, run.pool) for row in range(len(images))],
        [images.ids + images.paths + images.labels.tolist() for images in (run.target, run.pool)],
        run.tuned.tolist(), run.predictions.table().to_pydict(), truth.read_bytes().hex(),
        run.selection.images.to_pydict(), run.selection.classes.to_pydict(), run.selection.about,
        [[part.features.tolist(), part.index.to_pydict(), part.quarantined] for part in (pool, target)],
    ]  # fmt: skip
    return hash_value(facts)


def outcome(work) -> str:
    """What came of it, or what it was refused with."""
    try:
        return work()
    except JustrightError as error:
        return f"refused: {error}"


@pytest.mark.parametrize("name", FILES)
def test_damaged_file_of_a_run_changes_nothing_or_raises_with_its_name(finished, copied, read_into, name):
    file = copied / "run" / name
    before = everything(copied / "run", read_into)
    good, refused = file.read_bytes(), 0
    for damage, data in damages(good, (finished / "other" / name).read_bytes()).items():
        file.write_bytes(data)
        found = outcome(lambda: everything(copied / "run", read_into))
        if damage == "of another run" and name == "run.json":
            assert found.startswith("refused: ")  # by the name of a file that it does not fit
        elif found.startswith("refused: "):
            assert Path(name).name in found, (damage, found)
            refused += 1
        else:
            assert found == before, damage
    assert refused
    file.unlink()
    assert name in outcome(lambda: everything(copied / "run", read_into)) or name == "run.json"


@pytest.mark.parametrize("name", FILES)
def test_resumed_run_repairs_or_names_a_damaged_file(finished, copied, backbone, method, name, caplog):
    file = copied / "run" / name
    before = results(copied / "run")
    good = file.read_bytes()
    every = damages(good, (finished / "other" / name).read_bytes())
    for damage in ["truncated", "of another run", *[damage for damage in every if damage.startswith("bit")][:1]]:
        if damage not in every:
            continue
        file.write_bytes(every[damage])
        caplog.clear()
        found = outcome(lambda: str(run_of(copied / "run", backbone, method).path))
        if found.startswith("refused: "):
            # with the list of files of another run, the first file that is not in it is named
            is_other_list = (name, damage) == ("run.json", "of another run")
            expected = "is missing or not what the run finished with" if is_other_list else name.partition("/")[0]
            assert expected in found, (damage, found)
            file.write_bytes(good)
        else:
            assert results(copied / "run") == before, damage
            assert name in caplog.text or file.read_bytes() == good, damage


def results(path: Path) -> dict[str, bytes]:
    names = ("tuned.npy", "predictions.parquet", "weights.parquet", "model.safetensors", "scores.json")
    return {name: (path / name).read_bytes() for name in names}


@pytest.mark.parametrize("kind", STORED)
def test_damaged_bank_or_cache_is_rebuilt_with_a_warning(finished, copied, backbone, method, kind, caplog):
    if method == "kmeans" and "bank" in kind:
        assert not list((copied / "home").glob(STORED[kind]))
        pytest.skip("k-means stores no views")
    before = results(copied / "run")
    for damage in ("truncated", "zeros", "of another run", "bit"):
        file, *others = sorted((copied / "home").glob(STORED[kind]))
        others += sorted((finished / "other home").glob(STORED[kind]))
        every = damages(file.read_bytes(), others[-1].read_bytes())
        shutil.rmtree(copied / "run")
        data = [every[name] for name in every if name.startswith(damage)]
        if not data:  # the key of the cache is that of the other run too
            data = [b"{}"]
        file.write_bytes(data[0])
        with caplog.at_level(logging.WARNING):
            caplog.clear()
            run_of(copied / "run", backbone, method)
        assert results(copied / "run") == before, damage
        if kind != "index of a bank":  # nobody reads it but people
            assert "damaged" in caplog.text, damage
            assert file.parent.name in caplog.text


def test_damaged_single_checkpoint_raises(copied, backbone, method, caplog):
    if method == "kmeans":
        pytest.skip("k-means has no checkpoints")
    before = results(copied / "run")
    newest = max((copied / "run" / "checkpoint").glob("step-*.safetensors"))
    data = bytearray(newest.read_bytes())
    data[-5] ^= 4
    newest.write_bytes(data)
    assert "every checkpoint in" in outcome(lambda: str(run_of(copied / "run", backbone, method).path))
    assert f"{newest.name} is damaged" in caplog.text
    shutil.rmtree(newest.parent)
    (copied / "run" / "metrics.jsonl").unlink()
    run_of(copied / "run", backbone, method)
    assert results(copied / "run") == before
