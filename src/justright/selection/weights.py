"""Class weights to JSON and back, with the reason for each."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from justright.errors import DataError
from justright.selection.base import Selector
from justright.types import Array

FORMAT = "justright class weights 1"


@dataclass(frozen=True)
class ClassWeights:
    """What a selector decided, as it is written to a file."""

    selector: str
    params: dict[str, Any]
    classes: Int[Array, " classes"]
    class_weight: Float[Array, " classes"]
    reason: list[str]


def save_weights(path: Path, selector: Selector) -> None:
    """Write classes, weights and reasons of a fitted selector."""
    content = {
        "format": FORMAT,
        "selector": type(selector).__name__,
        "params": {name: _plain(value) for name, value in selector.get_params().items()},
        "classes": selector.classes_.tolist(),
        "class_weight": selector.class_weight_.tolist(),
        "reason": list(selector.reason_),
    }
    # A reader never meets half a file: it appears whole, under its name, at the end.
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    os.replace(unfinished, path)


def load_weights(path: Path) -> ClassWeights:
    """Read what `save_weights` wrote."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: {error}", expected="a file written by save_weights") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataError(f"{path}: not a file of class weights", expected=f"a JSON object with format {FORMAT!r}")
    return ClassWeights(
        selector=content["selector"],
        params=content["params"],
        classes=np.array(content["classes"], dtype=np.int64),
        class_weight=np.array(content["class_weight"], dtype=np.float64),
        reason=content["reason"],
    )


def _plain(value: Any) -> Any:
    """A parameter as JSON has it; an estimator of the number of categories becomes the number."""
    if hasattr(value, "n_categories_"):
        return int(value.n_categories_)
    return list(value) if isinstance(value, tuple) else value
