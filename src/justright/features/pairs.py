"""Labeled and unlabeled features put together, for what clusters both."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from justright.errors import DataError
from justright.features.table import FeatureTable
from justright.types import UNLABELED, Array, Labels


def labeled_and_target(labeled: FeatureTable, target: FeatureTable) -> tuple[Float[Array, "images dim"], Labels]:
    """The rows of both, labeled ones first; every row of the target counts as unlabeled, whatever its table says."""
    labeled.header.require_comparable(target.header)
    if (labeled.labels == UNLABELED).all():
        raise DataError("none of the labeled images has a label", expected="features extracted from labeled images")
    features = np.concatenate([labeled.features, target.features]).astype(np.float32, copy=False)
    return features, np.concatenate([labeled.labels, np.full(len(target), UNLABELED)])
