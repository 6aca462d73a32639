"""Which labeled classes to learn from, and how much: from features of pool and target to class weights."""

from justright.selection.base import Selector
from justright.selection.beta import BetaSelector
from justright.selection.beta_weights import harden
from justright.selection.bins import BinsSelector
from justright.selection.class_weights import ClassWeights, ImageWeights, Remark, SelectionPlot
from justright.selection.cui import CuiSelector
from justright.selection.shards import PoolFeatures, TargetFeatures
from justright.selection.simple import OwnSelector, RandomSelector, UniformSelector
from justright.selection.stability import Stability, stability
from justright.utils.file_rows import FileRows, row_shards
from justright.utils.parallel import ENGINES, Engine
from justright.utils.registry import Registry

DEFAULT_SELECTOR = "none"  # of `discover` and `select`; why: docs/decisions.md, "Default selector"

SELECTORS: Registry[type[Selector]] = Registry("selector")
SELECTORS.add("none", UniformSelector, "nothing is selected: all of the pool weighs 1")
SELECTORS.add("own", OwnSelector, "leaves the whole pool out: the target's own labels alone")
SELECTORS.add("cui", CuiSelector, "keeps the nearest")
SELECTORS.add("bins", BinsSelector, "discards the far, then the near")
SELECTORS.add("beta", BetaSelector, "soft weights, highest between too near and too far")
SELECTORS.add("random", RandomSelector, "keeps a share of the classes, drawn at random")
