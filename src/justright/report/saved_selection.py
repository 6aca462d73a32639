"""A selection read back from its files, as the figures and tables of a selection want it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from justright.data.pool import Origin
from justright.errors import DataError
from justright.runs.feature_pool import FeaturePool
from justright.runs.selection_result import SelectionResult
from justright.runs.weight_files import SavedSelection
from justright.selection import SELECTORS, Stability


def restored(saved: SavedSelection) -> SelectionResult:
    """The selector with its parameters and all that the files say it decided, without the features it saw.

    Older files lack the threshold of Bins; there it becomes NaN, which is not drawn.
    """
    classes, name = saved.classes, str(saved.about["selector"])
    if name not in SELECTORS:
        raise DataError(f"selector {name!r}", expected=f"one of {', '.join(SELECTORS)}")
    params = {key: tuple(value) if isinstance(value, list) else value for key, value in saved.about["params"].items()}
    selector = SELECTORS[name](**params)
    selector.classes_ = classes["label"].to_numpy().astype(np.int64)
    selector.class_weight_ = classes["weight"].to_numpy().astype(np.float64)
    selector.reason_ = classes["reason"].to_pylist()
    for column in ("similarity", "distance"):
        if column in classes.column_names:
            setattr(selector, f"class_{column}_", classes[column].to_numpy())
    for column in ("bin", "rank"):
        if column in classes.column_names:
            setattr(selector, f"{column}_", classes[column].to_numpy())
    for found in ("threshold", "target_similarity"):
        vars(selector)[f"{found}_"] = saved.about.get(found, np.nan)
    pairs = zip(classes["dataset"].to_pylist(), classes["class_name"].to_pylist(), strict=True)
    origins = [
        Origin(dataset, label, class_name.removeprefix(f"{dataset}/"))
        for label, (dataset, class_name) in enumerate(pairs)
    ]
    labels = np.searchsorted(selector.classes_, saved.images["label"].to_numpy().astype(np.int64))
    result = SelectionResult(name, selector, FeaturePool((), labels, tuple(origins)), _stability(classes))
    vars(result)["sample_weight"] = saved.sample_weight  # as written, where images were weighed one by one
    return result


def _stability(classes: pa.Table) -> Stability | None:
    if "kept_share" not in classes.column_names:
        return None
    share, std = (classes[name].to_numpy().astype(np.float64) for name in ("kept_share", "weight_std"))
    weight = classes["weight"].to_numpy().astype(np.float64)
    return Stability(classes["label"].to_numpy().astype(np.int64), share, weight, std, n_resamples=0, n_failed=0)
