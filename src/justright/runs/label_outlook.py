"""Are labels expected to help or to hurt? The transfer flow of a selection, beside that of the whole pool."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from justright.errors import DegenerateError
from justright.features.table import FeatureTable
from justright.runs.feature_pool import FeaturePool
from justright.seeding import generator
from justright.selection import LabelEffect, label_effect
from justright.types import Array

MAX_IMAGES = 10_000  # of pool and target each; drawn at random beyond
MOST_CLUSTERS = 100
LEAST_GAIN = 0.01  # a smaller change of transfer flow, up or down, is called none


@dataclass(frozen=True)
class LabelOutlook:
    """The effect of labels on the target's transfer flow: as selected, and with every class of the pool.

    `n_clusters` is how many clusters of the target were told apart, `is_guess` whether nobody said that number. Where
    there is nothing to compute, `problem` says why and the effects are None.
    """

    selected: LabelEffect | None
    everything: LabelEffect | None
    n_clusters: int
    is_guess: bool
    problem: str = ""

    def sentence(self) -> str:
        """What to expect, in a line."""
        if self.selected is None or self.everything is None:
            return f"Transfer flow: not computed, {self.problem}."
        text = (
            f"Transfer flow {self.selected.without_labels:.3g} without labels, {self.selected.with_labels:.3g} with "
            f"those selected ({_percent(self.selected.gain)}): expect them to {_verb(self.selected.gain)}"
        )
        if self.everything != self.selected:
            text += f". The whole pool: {_percent(self.everything.gain)}"
        guess = ", a guess: give --n-clusters" if self.is_guess else ""
        return f"{text}. ({self.n_clusters} clusters{guess}; a linear stand-in for training: read the sign.)"

    def to_json(self) -> dict[str, Any]:
        """The numbers and the sentence."""
        parts = {"selected": self.selected, "everything": self.everything}
        effects = {name: effect and asdict(effect) | {"gain": effect.gain} for name, effect in parts.items()}
        return effects | {"n_clusters": self.n_clusters, "is_guess": self.is_guess, "says": self.sentence()}


def label_outlook(
    pool: FeaturePool,
    target: FeatureTable,
    sample_weight: Float[Array, " images"],
    n_clusters: int | None = None,
    seed: int = 0,
) -> LabelOutlook:
    """Transfer flow of the target without labels, with the weighted pool, and with all of the pool.

    Without `n_clusters` it takes sqrt(images / 2), a rule of thumb: the same clusters are counted with and without
    labels, so the number sets how fine the question is rather than its answer.
    """
    rows, target_rows = _some(len(pool), seed, "pool"), _some(len(target), seed, "target")
    k = n_clusters or int(np.clip(round(math.sqrt(len(target_rows) / 2)), 2, MOST_CLUSTERS))
    features, labels, weight = pool.take(rows), pool.labels[rows], sample_weight[rows]
    seen = np.asarray(target.features[target_rows])
    try:
        everything = label_effect(features, labels, seen, n_clusters=k, seed=seed)
        selected = everything
        if np.ptp(weight) > 0:  # a common factor changes nothing
            selected = label_effect(features, labels, seen, weight, n_clusters=k, seed=seed)
    except DegenerateError as error:
        return LabelOutlook(None, None, k, n_clusters is None, problem=error.came)
    return LabelOutlook(selected, everything, k, n_clusters is None)


def _some(n: int, seed: int, what: str) -> Int[Array, " rows"]:
    if n <= MAX_IMAGES:
        return np.arange(n)
    return np.sort(generator(seed, "outlook", what).choice(n, MAX_IMAGES, replace=False))


def _percent(gain: float) -> str:
    return f"{100 * gain:+.1f} %"


def _verb(gain: float) -> str:
    if abs(gain) < LEAST_GAIN:
        return "matter little"
    return "help" if gain > 0 else "hurt"
