"""What simple methods on frozen features reach with the K of a run: the scores that its answer is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from justright.clustering.baselines import BASELINES, MOST_ROWS, FrozenFeatures, simple_clusters
from justright.data.pool import OWN
from justright.evaluation import evaluate
from justright.evaluation.files import JudgedPredictions, classes_named
from justright.evaluation.scores import GROUPS
from justright.features.table import FeatureTable
from justright.geometry import evenly_spaced
from justright.runs.run_folder import RunFolder
from justright.utils.types import UNLABELED, Array

ScoresByMethod = dict[str, dict[str, Any]]  # all, old, new and names, which has the same three


def baseline_scores(
    run: RunFolder, judged: JudgedPredictions, pool: FeatureTable, target: FeatureTable
) -> ScoresByMethod:
    """All, Old and New of each of `BASELINES`, also if names count. The truth scores their clusters afterwards.

    Of more than `MOST_ROWS` images, of the target or labeled, evenly spaced ones are clustered and judged.

    Parameters:
        run: its predictions tell K and the known classes.
        judged: the predictions of the run beside the truth.
        pool, target: features before training.
    """
    known = [each.name for each in run.predictions.categories if each.kind == "known"]
    number = {name: k for k, name in enumerate(known)}
    names = [(name or "").removeprefix(f"{OWN}/") for name in pool.index["class_name"].to_pylist()]
    labels = np.array([number.get(name, UNLABELED) for name in names], dtype=np.int64)
    labeled = np.flatnonzero(labels != UNLABELED)
    labeled, rows = labeled[evenly_spaced(len(labeled), MOST_ROWS)], evenly_spaced(len(target), MOST_ROWS)
    features = FrozenFeatures(
        np.asarray(target.features[rows], dtype=np.float32),
        np.asarray(pool.features[labeled], dtype=np.float32),
        labels[labeled],
        n_known=len(known),
        n_clusters=len(run.predictions.categories),
        n_absent=sum(name not in run.own_classes for name in known),
        seed=int(run.about.get("seed", 0)),
    )
    is_judged, place = judged_rows(rows, judged.is_given)
    named = classes_named(known, judged.class_names) if judged.class_names else None
    found = {}
    for method in BASELINES:
        clusters = simple_clusters(features, method)[is_judged]
        called = None
        if named is not None:
            called = np.append(named, UNLABELED)[np.minimum(clusters, len(known))]
        sides = judged.y_true[place], clusters, judged.is_old[place]
        scores = evaluate(*sides, called=called, n_resamples=0).to_dict()
        found[method] = {each: scores[each] for each in (*GROUPS, "names")}
    return found


def judged_rows(
    rows: Int[Array, " rows"], is_given: Bool[Array, " target"]
) -> tuple[Bool[Array, " rows"], Int[Array, " judged"]]:
    """Which of these rows of the target are judged, and their places among all that are: those that nobody labeled."""
    is_judged = ~is_given[rows]
    return is_judged, (np.cumsum(~is_given) - 1)[rows[is_judged]]
