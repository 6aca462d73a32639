"""Target labels never reach selection or training."""

from __future__ import annotations

import ast
import gc
import pickle
from dataclasses import replace
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import justright
from justright.data import ClassSplit, ImageSet, Truth, gcd_split, open_folder
from justright.utils.errors import DataError

MAY_OPEN = {"data", "evaluation", "runs", "benchmark", "report", "cli"}
"""`data` makes a Truth; the others compare predictions with it."""


@pytest.fixture
def sealed(make_tree):
    photos = open_folder(make_tree({"birds/crow": 6, "birds/wren": 5, "fish/eel": 4}))
    return gcd_split(photos, ClassSplit((0,), {"Similar": (1, 2)}))


def reachable(start: object) -> list[object]:
    """Every object that code holding `start` could get at, except code and modules."""
    seen, pending = {}, [start]
    while pending:
        thing = pending.pop()
        if id(thing) in seen or isinstance(thing, type | ModuleType | FunctionType):
            continue
        seen[id(thing)] = thing
        pending += gc.get_referents(thing)
        pending += list(vars(thing).values()) if hasattr(thing, "__dict__") else []
        if isinstance(thing, pa.Table):
            pending += thing.columns
        if isinstance(thing, ImageSet):
            pending += [thing.labels, thing.classes, thing.hierarchy]
    return list(seen.values())


def holds(thing: object, labels: np.ndarray) -> bool:
    if isinstance(thing, np.ndarray | pa.ChunkedArray | pa.Array) and len(thing) == len(labels):
        values = thing.tolist() if isinstance(thing, np.ndarray) else thing.to_pylist()
        return values == labels.tolist()
    return isinstance(thing, list | tuple) and len(thing) == len(labels) and list(thing) == labels.tolist()


def test_nothing_that_training_receives_leads_to_the_labels(sealed):
    split, truth = sealed
    labels, _ = truth.open_for_evaluation()
    found = reachable(split)
    assert not [thing for thing in found if isinstance(thing, Truth)]
    assert not [thing for thing in found if holds(thing, labels)]
    for column in split.unlabeled.table.columns:
        if pa.types.is_dictionary(column.type):
            words = {word for chunk in column.chunks for word in chunk.dictionary.to_pylist()}
            assert not words & {"birds/wren", "fish/eel", "birds", "fish"}, "a class name is left in a dictionary"


def test_the_search_would_find_a_leak(sealed):
    split, truth = sealed
    labels, _ = truth.open_for_evaluation()
    leaky = replace(split, labeled=truth._images)
    assert any(holds(thing, labels) for thing in reachable(leaky))


def test_only_evaluation_and_what_stands_above_it_names_the_truth():
    source = Path(justright.__file__).parent
    offenders = []
    for file in source.rglob("*.py"):
        room = file.relative_to(source).parts[0].removesuffix(".py")
        if room in MAY_OPEN or room == "__init__":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            name = getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "name", None)
            if name in {"Truth", "open_for_evaluation"}:
                offenders.append(f"{file.relative_to(source)}:{node.lineno}")
    assert offenders == []


def test_a_truth_tells_nothing_by_accident(sealed):
    _, truth = sealed
    assert repr(truth) == f"Truth({len(truth)} labels, sealed)"
    with pytest.raises(TypeError, match="does not travel"):
        pickle.dumps(truth)
    assert not hasattr(truth, "__dict__")


def test_a_saved_truth_has_what_evaluation_needs(sealed, tmp_path):
    split, truth = sealed
    truth.save(tmp_path / "truth.parquet")
    table = pq.read_table(tmp_path / "truth.parquet")
    assert table["path"].to_pylist() == split.unlabeled.paths
    labels, is_old = truth.open_for_evaluation()
    assert table["label"].to_pylist() == labels.tolist()
    assert table["is_old"].to_pylist() == is_old.tolist()
    with pytest.raises(DataError, match="parquet"):
        truth.save(tmp_path / "truth.csv")
