"""The joint answer of one or several trainings of a method, in place of the method's own assignment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from justright.discovery.evidence import USUAL_WIDTH
from justright.discovery.joint import MOST_ANCHORS, Seen, joint_answer, probabilities
from justright.discovery.predictions import UNCALIBRATED
from justright.discovery.probability import probability_right
from justright.utils.types import UNLABELED, Array

RESTS_ON = "how far clusterings agree, by a model fitted on problems whose truth is known"
UNCALIBRATED_TEMPERATURE = 0.1  # of probabilities where no labeled image tells it: that of SimGCD's student


def join(
    methods: Sequence[Any],
    pool: Float[Array, "labeled dim"],
    target: Float[Array, "target dim"],
    reference: int = 0,
    below: float = 0.0,
    k_width: float = USUAL_WIDTH,
) -> Any:
    """Give the method of the `reference` the joint answer of all of them; its own is kept as `own_labels_`.

    Parameters:
        methods: after `fit` on the same images, each with another seed.
        pool, target: features before training, of all labeled images and of the target.
        below: log(K_estimated / K) if K was given and is smaller than the estimate; otherwise 0.
        k_width: log(high / low) of the 90 % interval of the estimate of K.
    """
    method = methods[reference]
    rows = method.class_rows_
    places = _some(method.class_labels_)
    labels = method.class_labels_[places]
    temperatures = [_temperature(each) for each in methods]

    def seen(frozen: Array, tuned: Sequence[Array]) -> Seen:
        told = zip(methods, tuned, temperatures, strict=True)
        said = [probabilities(each.assigner_.scores(features), temperature) for each, features, temperature in told]
        return Seen(frozen.astype(np.float32), tuned, said)

    def target_at(some: Int[Array, " rows"]) -> Seen:
        return seen(np.asarray(target[some]), [each.features_[some] for each in methods])

    labeled = seen(np.asarray(pool[rows[places]]), [each.class_features_[places] for each in methods])
    given = np.where(method.is_given_, method.labels_, UNLABELED)
    answer, found = joint_answer(
        labeled, labels, target_at, given, method.n_categories, temperatures[reference], reference, below, k_width
    )
    method.joint_, method.evidence_, method.own_labels_ = answer, found.evidence, method.labels_
    method.labels_ = found.category
    method.confidence_ = np.where(method.is_given_, 1.0, probability_right(found.evidence)).astype(np.float32)
    method.calibrated_on_ = RESTS_ON
    return method


def _temperature(method: Any) -> float:
    return UNCALIBRATED_TEMPERATURE if method.calibrated_on_ == UNCALIBRATED else float(method.assigner_.temperature)


def _some(labels: Int[Array, " labeled"]) -> Int[Array, " kept"]:
    """Places of all labeled images, or of some of each class where there are too many."""
    step = -(-len(labels) // MOST_ANCHORS)
    if step <= 1:
        return np.arange(len(labels))
    by_class = np.argsort(labels, kind="stable")
    _, first = np.unique(labels[by_class], return_index=True)
    return np.sort(by_class[np.union1d(np.arange(0, len(labels), step), first)])
