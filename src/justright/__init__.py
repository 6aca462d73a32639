"""Find new categories in unlabeled images, with the labeled data that actually helps."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_MODULES = {
    "justright.cli": "main",
    "justright.result": "Result",
    "justright.api": "discover discover_features",
    "justright.data": "ClassSplit ImageSet Pool Split Truth from_dataset gcd_split glyph_set merge_pool open_images"
    " read_class_split",
    "justright.features.table": "FeatureTable",
    "justright.features.backbone": "load_backbone",
    "justright.features.extract": "extract",
    "justright.selection": "SELECTORS BetaSelector BinsSelector ClassWeights CuiSelector RandomSelector Selector"
    " UniformSelector",
    "justright.clustering": "SemiSupKMeans",
    "justright.estimation.combined": "CombinedCounter",
    "justright.estimation.labeled_search": "LabeledSearchCounter",
    "justright.estimation.mixture": "MixtureCounter",
    "justright.estimation.spread": "SpreadCounter",
    "justright.evaluation": "Scores evaluate",
    "justright.discovery.cms": "CMS",
    "justright.discovery.configs": "TrainConfig",
    "justright.discovery.gcd": "GCD",
    "justright.discovery.kmeans": "KMeansBaseline",
    "justright.discovery.learner": "Learner",
    "justright.discovery.methods": "METHODS",
    "justright.discovery.mugcd": "MuGCD",
    "justright.discovery.selex": "SelEx",
    "justright.discovery.simgcd": "SimGCD",
    "justright.discovery.base": "TrainedDiscovery",
    "justright.discovery.xcon": "XCon",
    "justright.losses": "LossParts SelfContrastiveLoss WeightedSupConLoss",
    "justright.utils.errors": "JustrightError",
    "justright.utils.settings": "COUNT SHARE setting",
}
"""The public names of each module. A module is imported when its name is used, so that the command line starts fast."""

_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = ["__version__", *sorted(_MODULE_OF)]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'justright' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return __all__
