"""Any damage to any file that we write: it is read as it was, or refused with its name. And files of strangers whose
checksums are right: read, or refused by a JustrightError, and never anything else.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import event, given
from hypothesis import strategies as st
from safetensors.torch import save_file
from tests.bad_day.fuzzing import ANYTHING, budget, damaged, damages
from tests.bad_day.test_readers_fuzz import reading
from tests.benchmark.test_suite import TINY
from tests.discovery.tiny import backbone_of_noise
from tests.features.filled_cache import ABOUT as CACHED
from tests.features.filled_cache import IDS, KEY, filled
from tests.features.tiny_banks import ROWS, VIEWS, bank_of
from tests.features.tiny_banks import tiny as tiny_backbone
from tests.made_runs import make_run
from tests.runs.test_selection import TARGET, drawn_pool, made

from justright.benchmark.results import read_results
from justright.benchmark.suite import read_suite
from justright.data import gcd_split, glyph_set, open_images, random_half
from justright.discovery.assigner import CategoryAssigner
from justright.discovery.checkpoints import Checkpoint, Checkpoints, checksum
from justright.discovery.joint import Inputs, JointAnswer, joint_answer
from justright.discovery.learner import trainable_copy
from justright.discovery.model_files import read_model, write_model
from justright.discovery.predictions import Predictions
from justright.evaluation import Scores, evaluate
from justright.evaluation.files import read_judged
from justright.features import networks
from justright.features.cache import FeatureCache
from justright.features.table import FeatureTable
from justright.runs.run_folder import RunFolder
from justright.runs.selection import load_selection, save_selection
from justright.utils.errors import JustrightError
from justright.utils.hashing import signed

FEATURES = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
TENSORS = {"network/a": torch.arange(6.0).reshape(2, 3), "momentum/a": torch.ones(3), "b": torch.tensor(2.5)}
BACKBONE, BANKED = backbone_of_noise(), tiny_backbone()
ABOUT = {"method": "kmeans", "n_categories": 3, "seed": 0, "config": {}, "categories": [["a", "known"]],
         "known_labels": [0], "calibrated_on": "nothing"}  # fmt: skip


def joint_of_features() -> JointAnswer:
    seen = Inputs(FEATURES, [FEATURES], [np.full((6, 3), 1 / 3, dtype=np.float32)])
    labels = np.array([0, 1])
    labeled = Inputs(FEATURES[:2], [FEATURES[:2]], [seen.probability[0][:2]])
    return joint_answer(labeled, labels, lambda rows: seen, np.full(6, -1), 3, 1.0)[0]


JOINT = joint_of_features()


def images(table: Any) -> list[Any]:
    return [table.ids, table.paths, table.labels.tolist(), table.classes, table.hierarchy, table.datasets]


def split_files(folder: Path) -> None:
    drawn = glyph_set(3, ["digits"], 0).with_ids()
    split, truth = gcd_split(drawn, random_half(drawn.classes, 0))
    for name, part in {"labeled": split.labeled, "target": split.unlabeled}.items():
        part.save(folder / f"{name}.parquet")
    truth.save(folder / "truth.parquet")
    index = split.unlabeled.table.select(["id", "dataset", "path"])
    n = len(split.unlabeled)
    categories = tuple(Predictions.open(RUN / "predictions.parquet").categories)
    found = Predictions(index, np.arange(n) % 3, np.linspace(0, 1, n), np.arange(n) < 2, categories)
    found.save(folder / "predictions.parquet")


def read_split(folder: Path) -> Any:
    judged = read_judged(folder / "predictions.parquet", folder / "truth.parquet")
    found = Predictions.open(folder / "predictions.parquet")
    return [images(open_images(folder / f"{name}.parquet")) for name in ("labeled", "target")] + [
        judged.y_true.tolist(), judged.y_pred.tolist(), judged.is_old.tolist(), judged.class_names,
        found.table().to_pydict(), found.categories,
    ]  # fmt: skip


def read_store(folder: Path) -> Any:
    table = FeatureTable.open(folder)
    return [table.features.tolist(), table.index.to_pydict(), table.header, table.quarantined]


def read_bank(folder: Path) -> Any:
    bank = bank_of(folder, backbone=BANKED)
    bank.build()  # verifies what is there; damaged views are computed again
    return [part.tolist() for part in bank.batch(ROWS, VIEWS)]


def read_checkpoint(folder: Path) -> Any:
    found = Checkpoints(folder).load()
    return {name: tensor.tolist() for name, tensor in found.tensors.items()}, found.state


def read_a_model(folder: Path) -> Any:
    backbone, assigner, joint, about = read_model(folder, trainable_copy(BACKBONE))
    tuned = {name: tensor.tolist() for name, tensor in backbone.tuned_state().items()}
    parts = joint.about(), {name: part.tolist() for name, part in joint.tensors().items()}
    return tuned, parts, assigner.vectors.tolist(), assigner.offset.tolist(), assigner.temperature, about


def read_weights(folder: Path) -> Any:
    found = load_selection(folder / "w.parquet")
    return found.images.to_pydict(), found.classes.to_pydict(), found.about, found.summary(), found.source_cells()


def read_run(folder: Path) -> Any:
    run = RunFolder.open(folder)
    about = {name: value for name, value in run.about.items() if name != "files"}
    return about, run.count, run.scores.to_dict(), run.metrics, run.tuned.tolist(), run.selection.about


class Saved(NamedTuple):
    """How something is written and read again, by the functions that the commands call."""

    write: Callable[[Path], object]
    read: Callable[[Path], Any]
    names: tuple[str, ...] = ()
    """What an error may name beside the file itself."""


SAVED = {
    "split, truth and predictions": Saved(split_files, read_split),
    "store": Saved(lambda folder: FeatureTable.of(FEATURES, label=np.arange(6)).write(folder), read_store),
    "bank": Saved(lambda folder: bank_of(folder, backbone=BANKED).build(), read_bank),
    "checkpoint": Saved(
        lambda folder: Checkpoints(folder).save(7, Checkpoint(TENSORS, {"progress": {"epoch": 1, "sums": {"a": 0.1}}})),
        read_checkpoint,
        ("every checkpoint in",),
    ),
    "model": Saved(
        lambda folder: write_model(folder, BACKBONE, CategoryAssigner.of_centroids(FEATURES[:3]), ABOUT, JOINT),
        read_a_model,
    ),
    "weights": Saved(
        lambda folder: save_selection(folder / "w.parquet", made("beta", drawn_pool()), TARGET), read_weights
    ),
    "scores": Saved(
        lambda folder: evaluate(np.arange(6) % 2, np.arange(6) % 2, np.arange(6) % 2 == 0).save(folder / "scores.json"),
        lambda folder: Scores.load(folder / "scores.json").to_dict(),
    ),
    "run": Saved(lambda folder: shutil.copytree(RUN, folder, dirs_exist_ok=True), read_run),
}  # fmt: skip
RUN = Path()


@pytest.fixture(scope="module", autouse=True)
def finished(tmp_path_factory):
    """A run that says what its files hash to."""
    global RUN
    folder = make_run(tmp_path_factory.mktemp("made") / "run", per_class=8, n_wrong=3)
    folder.save_about(folder.about | {"is_finished": True})
    for name in ("pool.features", "target.features"):
        shutil.rmtree(folder.path / name)
    RUN = folder.path
    folder.save_about(folder.about | {"is_finished": True})


@pytest.fixture(scope="module", params=SAVED)
def saved(request, tmp_path_factory, finished) -> tuple[Saved, Path, str]:
    """How it is read, where it lies, and what it says."""
    folder = tmp_path_factory.mktemp("saved")
    SAVED[request.param].write(folder)
    return SAVED[request.param], folder, repr(SAVED[request.param].read(folder))


@given(data=st.data(), damage=damages())
@budget(25)
def test_damage_raises_with_the_file_or_changes_nothing(saved, data, damage):
    kind, folder, before = saved
    files = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    file = data.draw(st.sampled_from(list(files)))
    # which file of a split is which, the person says who names them
    others = [path for path in files if path.suffix == file.suffix and kind.write is not split_files] or [file]
    content = data.draw(st.just(damaged(files[file], damage)) | st.sampled_from(others).map(files.__getitem__))
    refused = after = ""
    try:
        file.write_bytes(content)
        after = repr(kind.read(folder))
    except JustrightError as error:
        refused = str(error)
    finally:
        shutil.rmtree(folder)
        for path, good in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(good)
    event("refused" if refused else "harmless")
    if refused:
        assert file.name in refused or any(name in refused for name in kind.names)
    else:
        assert after == before


@given(data=st.data(), damage=damages())
@budget(25)
def test_damaged_cache_returns_only_correct_rows(tmp_path_factory, data, damage):
    with reading() as folder:
        filled(folder, FEATURES)
        file = data.draw(st.sampled_from(sorted(path for path in folder.rglob("*") if path.is_file())))
        file.write_bytes(damaged(file.read_bytes(), damage))
        cache = FeatureCache(folder)
        is_found, found = cache.section(KEY, CACHED).read(IDS)
        assert found is None or found.tolist() == FEATURES[is_found].tolist()
        cache.sections()


def nearly(value: Any, depth: int = 3) -> st.SearchStrategy[Any]:
    """The value, with something else somewhere in it."""
    if not isinstance(value, dict) or not value or not depth:
        return ANYTHING
    changed = st.sampled_from(sorted(value)).flatmap(
        lambda name: nearly(value[name], depth - 1).map(lambda part: value | {name: part})
    )
    left_out = st.sampled_from(sorted(value)).map(lambda name: {n: v for n, v in value.items() if n != name})
    return (
        changed | left_out | st.dictionaries(st.text(max_size=5), ANYTHING, max_size=2).map(lambda more: value | more)
    )


SIGNED = {
    "store": ["store.json"],
    "model": ["model.json"],
    "scores": ["scores.json"],
    "run": ["run.json", "count.json", "scores.json"],
}


@pytest.mark.parametrize("kind", SIGNED)
@given(data=st.data())
@budget(25)
def test_foreign_signed_files_are_read_or_raise(kind, data):
    with reading() as folder:
        SAVED[kind].write(folder)
        file = folder / data.draw(st.sampled_from(SIGNED[kind]))
        forged = data.draw(nearly(json.loads(file.read_text())))
        try:
            file.write_text(json.dumps(signed(forged)), encoding="utf-8", errors="surrogatepass")
        except UnicodeEncodeError:
            return
        if file.name != "run.json" and kind == "run":
            RunFolder(folder).save_about({"is_finished": True, **RunFolder(folder).about})
        SAVED[kind].read(folder)


@given(data=st.data())
@budget(25)
def test_foreign_checkpoint_is_read_or_raises(data):
    state = {"progress": {"epoch": 1, "step": 2, "sums": {"a": 0.1}}, "made_with": {"seed": 0}}
    text = json.dumps(data.draw(nearly(state) | ANYTHING))
    about = {"format": "justright checkpoint 1", "state": text, "checksum": checksum(TENSORS, text)}
    with reading() as folder:
        save_file(
            TENSORS, folder / "step-000000001.safetensors", metadata=data.draw(st.just(about) | nearly_text(about))
        )
        Checkpoints(folder).load()


def nearly_text(about: dict[str, str]) -> st.SearchStrategy[dict[str, str]]:
    words = st.dictionaries(st.sampled_from(sorted(about)), st.text(st.characters(codec="utf-8"), max_size=9))
    return words.map(lambda more: about | more)


@pytest.mark.parametrize("file", ["w.parquet", "w.classes.parquet", "predictions.parquet"])
@given(data=st.data())
@budget(15)
def test_foreign_tables_are_read_or_raise(file, data):
    """Columns that are missing, of other types, or with other remarks than ours."""
    with reading() as folder:
        SAVED["weights"].write(folder)
        shutil.copy(RUN / "predictions.parquet", folder)
        table = pq.read_table(folder / file)
        names = data.draw(st.lists(st.sampled_from(table.column_names), unique=True, min_size=1))
        about = json.loads((table.schema.metadata or {})[b"justright"])
        text = json.dumps(data.draw(st.just(about) | nearly(about) | ANYTHING)).encode()
        strange = table.select(names).replace_schema_metadata({b"justright": text})
        place = data.draw(st.integers(0, len(names) - 1))
        if data.draw(st.booleans()):
            other = table[data.draw(st.sampled_from(table.column_names))]
            strange = strange.set_column(place, names[place], other)
        pq.write_table(strange, folder / file)
        Predictions.open(folder / "predictions.parquet").table()
        read_weights(folder)


@given(data=st.data(), damage=damages(max_size=2), ending=st.sampled_from(["safetensors", "pth"]))
@budget(25)
def test_any_file_of_parameters_is_read_or_raises(data, damage, ending):
    with reading() as folder:
        path = folder / f"network.{ending}"
        tensors = {"module.cls_token": torch.ones(1, 1, 4), "pos_embed": torch.zeros(1, 5, 4)}
        save_file(tensors, path) if ending == "safetensors" else torch.save({"teacher": tensors}, path)
        path.write_bytes(data.draw(st.just(damaged(path.read_bytes(), damage)) | st.binary(max_size=60)))
        assert all(isinstance(tensor, torch.Tensor) for tensor in networks.read(path).values())


@given(content=ANYTHING.map(json.dumps).map(str.encode) | st.binary(max_size=40) | st.just(b"[" * 100_000))
@budget(25)
def test_any_config_beside_parameters_is_read_or_raises(content):
    with reading() as folder:
        (folder / "config.json").write_bytes(content)
        found = networks.architecture_in(folder)
        assert found is None or isinstance(found, str)


@given(data=st.data(), damage=damages())
@budget(25)
def test_any_suite_and_results_are_read_or_raise(data, damage):
    with reading() as folder:
        (folder / "tiny.toml").write_bytes(damaged(TINY.encode(), damage))
        suite = read_suite(folder / "tiny.toml")
        assert all(problem.name for problem in suite.problems)
    line = {"problem": "a", "part": "", "setting": "own", "seed": 0, "print": "1", "all": 0.5}
    good = "".join(json.dumps(signed(line | {"seed": seed})) + "\n" for seed in range(3)).encode()
    with reading() as folder:
        (folder / "results.jsonl").write_bytes(damaged(good, damage))
        for found in read_results(folder / "results.jsonl"):
            assert found.get("all") == 0.5


DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    ("kind", "name"),
    [("store", "store.json"), ("store", "quarantine.json"), ("model", "model.json"),
     ("scores", "scores.json"), ("run", "run.json"), ("run", "count.json"), ("run", "metrics.jsonl")],
)  # fmt: skip
@pytest.mark.parametrize("data", [DEEP, b'{"a":' * 100_000, b'{"a": ' + b"[" * 900 + b"]" * 900 + b"}"])
def test_deeply_nested_json_raises_with_the_file(tmp_path, kind, name, data):
    SAVED[kind].write(tmp_path)
    (tmp_path / name).write_bytes(data + b"\n")
    with pytest.raises(JustrightError, match=name.replace(".", r"\.")):
        SAVED[kind].read(tmp_path)
