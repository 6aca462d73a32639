"""What the README shows in Python exists; its commands are checked in test_house.py."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import numpy as np

import justright

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
(BLOCK,) = re.findall(r"```python\n(.*?)```", README, re.S)


def test_every_import_works():
    inline = re.findall(r"`(from justright[\w.]* import \w+)`", README)
    assert inline
    for node in ast.walk(ast.parse("\n".join([BLOCK, *inline]))):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module)
            assert all(hasattr(module, alias.name) for alias in node.names)


def test_calls_name_parameters_that_there_are():
    calls = [
        node for node in ast.walk(ast.parse(BLOCK)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    checked = [node for node in calls if node.func.id in justright.__all__]
    assert len(checked) >= 5
    for call in checked:
        known = inspect.signature(getattr(justright, call.func.id))
        known.bind(*call.args, **{keyword.arg: keyword.value for keyword in call.keywords})


def test_selection_on_arrays_gives_what_the_example_reads():
    rng = np.random.default_rng(0)
    pool, target = (1 + rng.normal(size=(n, 8)).astype(np.float32) / 4 for n in (40, 30))
    labels = np.repeat(np.arange(4), 10)
    selector = justright.BetaSelector().fit(pool, labels, target)
    assert len(selector.class_weight_) == len(selector.reason_) == 4
    assert selector.sample_weight(labels).shape == (40,)
