"""Which labeled classes to learn from, and how much: from features of pool and target to class weights."""

from justright.selection.base import Selector
from justright.selection.beta import BetaSelector
from justright.selection.bins import BinsSelector
from justright.selection.cui import CuiSelector
from justright.selection.engines import ENGINES, Engine
from justright.selection.file_rows import FileRows, row_shards
from justright.selection.harden import harden
from justright.selection.random import RandomSelector
from justright.selection.stability import Stability, stability
from justright.selection.transfer_flow import LabelEffect, label_effect, transfer_flow
from justright.selection.uniform import OwnSelector, UniformSelector
from justright.selection.weights import ClassWeights, load_weights, save_weights

SELECTORS: dict[str, type[Selector]] = {
    "none": UniformSelector,
    "own": OwnSelector,
    "beta": BetaSelector,
    "bins": BinsSelector,
    "cui": CuiSelector,
    "random": RandomSelector,
}

__all__ = [
    "ENGINES",
    "SELECTORS",
    "BetaSelector",
    "BinsSelector",
    "ClassWeights",
    "CuiSelector",
    "Engine",
    "FileRows",
    "LabelEffect",
    "OwnSelector",
    "RandomSelector",
    "Selector",
    "Stability",
    "UniformSelector",
    "harden",
    "label_effect",
    "load_weights",
    "row_shards",
    "save_weights",
    "stability",
    "transfer_flow",
]
