"""Selection of labeled classes to learn from: class weights from features of pool and target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from justright.selection.base import OwnSelector, RandomSelector, Selector, UniformSelector
from justright.selection.beta import BetaSelector, harden
from justright.selection.bins import BinsSelector
from justright.selection.class_weights import ClassWeights, ImageWeights, SelectionPlot
from justright.selection.controls import MatchedSelector, RandomMatchedSelector, UniformMatchedSelector
from justright.selection.cui import CuiSelector
from justright.selection.shards import PoolFeatures, TargetFeatures
from justright.selection.stability import Stability, stability
from justright.utils.file_rows import FileRows, row_shards
from justright.utils.parallel import ENGINES, Engine
from justright.utils.registry import Registry

DEFAULT_SELECTOR = "none"  # of `discover` and `select`; why: docs/research/decisions.md, "Default selector"

SELECTORS: Registry[type[Selector]] = Registry("selector")
SELECTORS.add("none", UniformSelector, "nothing is selected: all of the pool weighs 1")
SELECTORS.add("own", OwnSelector, "leaves the whole pool out: the target's own labels alone")
SELECTORS.add("cui", CuiSelector, "keeps the nearest")
SELECTORS.add("bins", BinsSelector, "discards the far, then the near")
SELECTORS.add("beta", BetaSelector, "soft weights, highest between too near and too far")
SELECTORS.add("random", RandomSelector, "keeps a share of the classes, drawn at random")
SELECTORS.add("random-matched", RandomMatchedSelector, "control: random classes, as many as another selector keeps")
SELECTORS.add("uniform-matched", UniformMatchedSelector, "control: one weight for all, the mean of another selector's")


def selector_of(name: str, params: Mapping[str, Any], seed: int, n_clusters: int | None = None) -> Selector:
    """A selector with these parameters, and with seed and number of clusters if it has such parameters."""
    names = {field.name for field in fields(SELECTORS[name])}
    common = {"seed": seed} if n_clusters is None else {"seed": seed, "n_clusters": n_clusters}
    return SELECTORS[name](**{key: value for key, value in common.items() if key in names} | dict(params))
