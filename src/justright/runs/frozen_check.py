"""Compare a trained result with simple methods on frozen features, and recommend one without labels of the target."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from justright.clustering import SemiSupKMeans
from justright.clustering.baselines import BASELINES, MOST_ROWS, FrozenFeatures, simple_clusters
from justright.clustering.principal import in_directions, principal_directions
from justright.discovery.predictions import Category
from justright.evaluation import evaluate
from justright.evaluation.files import JudgedPredictions, classes_named
from justright.evaluation.scores import GROUPS
from justright.features.table import FeatureTable
from justright.geometry import evenly_spaced
from justright.utils.types import UNLABELED, Array, Labels, Mask

MOST_IMAGES = 20_000  # target images that are clustered
N_COMPARED = 2_000  # of these for the silhouette, which takes quadratic time
N_INIT = 3
# The silhouette of the trained clusters must reach this share of that of k-means: docs/research/discovery.md
LEAST_SHARE = 0.5
# Share of the categories used by k-means that training must use too: a training that was cut short uses few
LEAST_USED = 0.8
# A training that had time for less than this share of its epochs must pass stricter limits: docs/research/discovery.md
LEAST_TRAINED = 0.2
LEAST_SHARE_CUT_SHORT, LEAST_USED_CUT_SHORT = 0.9, 0.95

ScoresByMethod = dict[str, dict[str, Any]]  # All, Old, New, and the same three under "names"

FROZEN, SIMPLE = "k-means on frozen features", "simple methods on frozen features"
KEPT = ("n_held_out", "silhouette", "used", "scores", "trained_share", "baselines", "simple")  # fields in run.json


@dataclass(frozen=True, eq=False)
class FrozenCheck:
    """Evidence for the trained result and for k-means on frozen features; pairs have the trained one first."""

    held_out_accuracy: tuple[float, float] | None  # of held-out labeled images; None if there are none
    n_held_out: int  # number of held-out images
    silhouette: tuple[float, float]  # of target clusters, each in its own features, in principal directions or not
    used: tuple[int, int]  # number of categories with images after training, and of all categories
    clusters: Int[Array, " clustered"] = field(repr=False)  # by k-means, of the `clustered_rows`; known classes first
    scores: dict[str, object] | None = None  # All, Old and New of k-means if the truth is known; only reported
    trained_share: float = 1.0  # of the planned epochs; below 1 if `minutes` ended training
    baselines: ScoresByMethod | None = None  # as `scores`, of every simple method, also with names
    simple: dict[str, float] | None = None  # silhouettes of the simple methods in the features of k-means

    @property
    def best_simple(self) -> tuple[str, float]:
        """The simple method whose clusters are farthest apart, and their silhouette; k-means if it is alone."""
        every = {"k-means": self.silhouette[1]} | (self.simple or {})
        best = max(every, key=lambda name: every[name])
        return ("k-means", self.silhouette[1]) if every[best] <= self.silhouette[1] else (best, every[best])

    @property
    def is_worth_it(self) -> bool:
        """Whether the trained result is recommended."""
        if self.held_out_accuracy is not None:
            trained, frozen = self.held_out_accuracy
            both = (trained + frozen) / 2  # the common accuracy, if training made no difference
            noise = math.sqrt(2 * both * (1 - both) / self.n_held_out)
            if frozen - trained > 2 * noise:
                return False
        share, used = (LEAST_SHARE_CUT_SHORT, LEAST_USED_CUT_SHORT) if self.is_cut_short else (LEAST_SHARE, LEAST_USED)
        trained, frozen = self.silhouette[0], self.best_simple[1]
        is_apart = trained >= min(share * frozen, frozen)  # a share of a negative value would be larger than the value
        return is_apart and self.used[0] >= used * len(np.unique(self.clusters))

    @property
    def is_cut_short(self) -> bool:
        """Whether there was time for too few epochs."""
        return self.trained_share < LEAST_TRAINED

    def note(self, method: str) -> str:
        """Both results and the recommendation in one sentence."""
        facts = ["silhouette: {:.2f} trained, {:.2f} k-means".format(*self.silhouette)]
        best, apart = self.best_simple
        if best != "k-means":
            facts[0] += f", {apart:.2f} {best}"
        if self.held_out_accuracy is not None:
            facts.insert(0, "held-out accuracy: {:.0%} trained, {:.0%} k-means".format(*self.held_out_accuracy))
        if self.used[0] < self.used[1]:
            facts.append(f"{self.used[0]:,} of {self.used[1]:,} categories have images")
        if self.is_cut_short:
            facts.append(f"there was time for {self.trained_share:.0%} of the epochs")
        if self.is_worth_it:
            others = FROZEN if self.simple is None else SIMPLE
            return f"the trained result of {method} is recommended over {others} ({'; '.join(facts)})"
        problem = "training was cut short and did not help" if self.is_cut_short else "training did not help"
        advice = ", or more --minutes" if self.is_cut_short else ""
        return f"{problem} ({'; '.join(facts)}): use --method kmeans with another --out{advice}"

    def scored(self, y_true: Labels, is_old: Mask, is_given: Bool[Array, " target"] | None = None) -> FrozenCheck:
        """Add the accuracy of k-means. Images whose label was given are not scored, and y_true has none of them."""
        is_given = np.zeros(len(y_true), dtype=bool) if is_given is None else is_given
        is_judged, rows = judged_rows(clustered_rows(len(is_given)), is_given)
        found = evaluate(y_true[rows], self.clusters[is_judged], is_old[rows], with_intervals=False).to_dict()
        return replace(self, scores={group: found[group] for group in GROUPS})

    def to_json(self, method: str) -> dict[str, Any]:
        """Plain values."""
        kept = {"found_again": self.held_out_accuracy} | {name: getattr(self, name) for name in KEPT}
        return kept | {"recommended": method if self.is_worth_it else "kmeans"}


def class_labels(method: Any, n_labeled: int) -> Int[Array, " labeled"]:
    """The known class of each labeled image; -1 if the method has no category for it."""
    labels = np.full(n_labeled, UNLABELED, dtype=np.int64)
    labels[method.class_rows_] = method.class_labels_
    return labels


def frozen_check(method: Any, pool: FeatureTable, target: FeatureTable, with_simple: bool = False) -> FrozenCheck:
    """Compare the categories of a trained method with k-means on frozen features of the same images.

    Parameters:
        method: after `fit`, and after `join` if the answer is the joint one.
        pool, target: features before training.
        with_simple: compare with all simple methods, unless there are too many images.
    """
    rows, known, held_out = clustered_rows(len(target)), method.labeled_rows_, method.held_out_rows_
    labels = class_labels(method, len(pool))
    features = np.concatenate([np.asarray(pool.features[known]), np.asarray(target.features[rows])])
    given = np.concatenate([labels[known], np.where(method.is_given_, method.labels_, UNLABELED)[rows]])
    n_clusters = min(method.n_categories_, len(set(given.tolist()) - {UNLABELED}) + int(np.sum(given == UNLABELED)))
    held_out_features, trained = np.asarray(pool.features[held_out]), method.features_[rows]
    if method.config_.in_directions(method.backbone.cut.ends_in_norm):  # as `--method kmeans` would
        axes = principal_directions(features, n_clusters)
        features, held_out_features = (in_directions(each, *axes) for each in (features, held_out_features))
        # clusters are farther apart in fewer directions, so both are compared in the same number
        trained = in_directions(trained, *principal_directions(trained, n_clusters))
    else:
        trained = method.assigner_.compared(trained)
    clusters = SemiSupKMeans(n_clusters, n_init=N_INIT, seed=method.seed).fit(features, given)
    found, compared = np.asarray(clusters.labels_[len(known) :]), features[len(known) :]
    accuracy, simple = None, None
    if len(held_out):
        accuracy = method.held_out_accuracy_, float(np.mean(clusters.predict(held_out_features) == labels[held_out]))
    if with_simple and len(known) + len(rows) <= MOST_ROWS:
        numbers = len(method.known_labels_), method.n_categories_
        given_features = np.asarray(pool.features[known], dtype=np.float32), labels[known]
        inputs = FrozenFeatures(np.asarray(target.features[rows], dtype=np.float32), *given_features, *numbers)
        simple = {name: _silhouette(compared, simple_clusters(inputs, name)) for name in BASELINES}
    silhouette = _silhouette(trained, method.labels_[rows]), _silhouette(compared, found)
    used = len(np.unique(method.labels_)), method.n_categories_
    return FrozenCheck(
        accuracy, len(held_out), silhouette, used, found, trained_share=method.trained_share_, simple=simple
    )


def clustered_rows(n_target: int) -> Int[Array, " clustered"]:
    """The target images that are compared: all, or evenly spaced ones of a large target."""
    return np.arange(0, n_target, -(-n_target // MOST_IMAGES))


def _silhouette(features: Float[Array, "images dim"], cluster: Int[Array, " images"]) -> float:
    """The cosine silhouette of some of the images; -1 for a single cluster."""
    from sklearn.metrics import silhouette_score

    step = -(-len(features) // N_COMPARED)
    features, cluster = features[::step], cluster[::step]
    if not 1 < len(np.unique(cluster)) < len(cluster):
        return -1.0
    return float(silhouette_score(features, cluster, metric="cosine"))


def baseline_scores(
    categories: Sequence[Category],
    own_classes: Collection[str],
    labels: Int[Array, " labeled"],
    judged: JudgedPredictions,
    pool: FeatureTable,
    target: FeatureTable,
    seed: int = 0,
) -> ScoresByMethod:
    """All, Old and New of each of `BASELINES` with the K of the run, also with names.

    At most `MOST_ROWS` evenly spaced images of the target and of the labeled images are used.

    Parameters:
        categories: of the run.
        own_classes: names of the labeled classes that the target may show.
        labels: the known class of each labeled image, -1 for those without a category.
        judged: the predictions of the run with the truth.
        pool, target: features before training.
    """
    known = [each.name for each in categories if each.kind == "known"]
    labeled = np.flatnonzero(labels != UNLABELED)
    labeled, rows = labeled[evenly_spaced(len(labeled), MOST_ROWS)], evenly_spaced(len(target), MOST_ROWS)
    features = FrozenFeatures(
        np.asarray(target.features[rows], dtype=np.float32),
        np.asarray(pool.features[labeled], dtype=np.float32),
        labels[labeled],
        n_known=len(known),
        n_clusters=len(categories),
        n_absent=sum(name not in own_classes for name in known),
        seed=seed,
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
        scores = evaluate(*sides, called=called, with_intervals=False).to_dict()
        found[method] = {each: scores[each] for each in (*GROUPS, "names")}
    return found


def judged_rows(
    rows: Int[Array, " rows"], is_given: Bool[Array, " target"]
) -> tuple[Bool[Array, " rows"], Int[Array, " judged"]]:
    """Which of these target rows are scored (those without a given label), and their places among all scored rows."""
    is_judged = ~is_given[rows]
    return is_judged, (np.cumsum(~is_given) - 1)[rows[is_judged]]
