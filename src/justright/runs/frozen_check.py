"""Compare a trained result with simple methods on frozen features, and recommend one without labels of the target."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from justright.clustering import SemiSupKMeans
from justright.clustering.baselines import BASELINES, MOST_ROWS, FrozenFeatures, simple_clusters
from justright.clustering.principal import in_directions, principal_directions
from justright.evaluation import evaluate
from justright.evaluation.files import JudgedPredictions, classes_named
from justright.evaluation.scores import GROUPS
from justright.features.table import FeatureTable
from justright.utils.types import UNLABELED, Array

MOST_IMAGES = 20_000  # target images that are clustered
N_COMPARED = 2_000  # of these for the silhouette, which takes quadratic time
N_INIT = 3
# The silhouette of the trained clusters must reach this share of that of k-means: docs/research/training.md
LEAST_SHARE = 0.5
# Share of the categories used by k-means that training must use too: a training that was cut short uses few
LEAST_USED = 0.8
# A training that had time for less than this share of its epochs must pass stricter limits: docs/research/training.md
LEAST_TRAINED = 0.2
LEAST_SHARE_CUT_SHORT, LEAST_USED_CUT_SHORT = 0.9, 0.95

Clusters = Int[Array, " target"]
FROZEN = "k-means on frozen features"
# fields in run.json
KEPT = ("held_out_accuracy", "n_held_out", "silhouette", "used", "trained_share", "baselines", "simple")


@dataclass(frozen=True, eq=False)
class FrozenCheck:
    """Evidence for the trained result and for k-means on frozen features; pairs have the trained one first."""

    held_out_accuracy: tuple[float, float] | None  # of held-out labeled images; None if there are none
    n_held_out: int  # number of held-out images
    silhouette: tuple[float, float]  # of target clusters, each in its own features, in principal directions or not
    used: tuple[int, int]  # number of categories with images after training, and of all categories
    n_used_by_kmeans: int  # number of clusters with images
    trained_share: float = 1.0  # of the planned epochs; below 1 if `minutes` ended training
    baselines: dict[str, dict[str, Any]] | None = None  # `baseline_scores`, if the truth is known; only reported
    simple: dict[str, float] | None = None  # silhouettes of the simple methods in the features of k-means

    @property
    def best_simple(self) -> tuple[str, float]:
        """The simple method whose clusters are farthest apart, and their silhouette; k-means if it is alone."""
        every = [("k-means", self.silhouette[1]), *(self.simple or {}).items()]
        return max(every, key=lambda each: each[1])  # of equal ones the first

    @property
    def is_worth_it(self) -> bool:
        """Whether the trained result is recommended."""
        if self.held_out_accuracy is not None:
            trained, frozen = self.held_out_accuracy
            both = (trained + frozen) / 2  # the common accuracy, if training made no difference
            noise = math.sqrt(2 * both * (1 - both) / self.n_held_out)
            if frozen - trained > 2 * noise:
                return False
        used = LEAST_USED_CUT_SHORT if self.is_cut_short else LEAST_USED
        return self.silhouette[0] >= self.least_silhouette and self.used[0] >= used * self.n_used_by_kmeans

    @property
    def least_silhouette(self) -> float:
        """The silhouette that the trained clusters must reach: a share of that of the best simple method."""
        _, best = self.best_simple
        share = LEAST_SHARE_CUT_SHORT if self.is_cut_short else LEAST_SHARE
        return min(share * best, best)  # a share of a negative value would be larger than the value

    @property
    def is_cut_short(self) -> bool:
        """Whether there was time for too few epochs."""
        return self.trained_share < LEAST_TRAINED

    def note(self, method: str) -> str:
        """Whether training passed, and why, in one sentence."""
        best, apart = self.best_simple
        facts = [
            f"silhouette of its clusters {self.silhouette[0]:.2f}, needed {self.least_silhouette:.2f}, "
            f"{best} on frozen features {apart:.2f}"
        ]
        if self.held_out_accuracy is not None:
            trained, frozen = self.held_out_accuracy
            chance = f", within chance for {self.n_held_out:,} images" if self.is_worth_it and trained < frozen else ""
            facts.insert(0, f"held-out accuracy {trained:.0%}, k-means {frozen:.0%}{chance}")
        if self.used[0] < self.used[1]:
            facts.append(f"{self.used[0]:,} of {self.used[1]:,} categories have images")
        if self.is_cut_short:
            facts.append(f"there was time for {self.trained_share:.0%} of the epochs")
        if self.is_worth_it:
            return f"training with {method} passed its check ({'; '.join(facts)})"
        problem = "training was cut short and did not help" if self.is_cut_short else "training did not help"
        advice = ", or more --minutes" if self.is_cut_short else ""
        return f"{problem} ({'; '.join(facts)}): use --method kmeans with another --out{advice}"

    def to_json(self, method: str) -> dict[str, Any]:
        """Plain values."""
        return {name: getattr(self, name) for name in KEPT} | {"recommended": method if self.is_worth_it else "kmeans"}


def frozen_check(
    method: Any, pool: FeatureTable, target: FeatureTable, simple: Mapping[str, Clusters] | None = None
) -> FrozenCheck:
    """Compare the categories of a trained method with k-means on frozen features of the same images.

    Parameters:
        method: after `fit`, and after `join` if the answer is the joint one.
        pool, target: features before training.
        simple: the result of `simple_results`, to compare with all simple methods.
    """
    rows, known, held_out = clustered_rows(len(target)), method.labeled_rows_, method.held_out_rows_
    labels = np.full(len(pool), UNLABELED, dtype=np.int64)
    labels[method.class_rows_] = method.class_labels_
    features = np.concatenate([np.asarray(pool.features[known]), np.asarray(target.features[rows])])
    given = np.concatenate([labels[known], np.where(method.is_given_, method.labels_, UNLABELED)[rows]])
    n_classes, n_free = len(set(given.tolist()) - {UNLABELED}), int(np.sum(given == UNLABELED))
    n_clusters = min(method.n_categories_, n_classes + n_free)
    held_out_features = np.asarray(pool.features[held_out])
    trained = method.features_[rows]
    if method.config_.in_directions(method.backbone.cut.ends_in_norm):  # as `--method kmeans` would
        axes = principal_directions(features, n_clusters)
        features, held_out_features = (in_directions(each, *axes) for each in (features, held_out_features))
        # clusters are farther apart in fewer directions, so both are compared in the same number
        trained = in_directions(trained, *principal_directions(trained, n_clusters))
    else:
        trained = method.assigner_.compared(trained)
    kmeans = SemiSupKMeans(n_clusters, n_init=N_INIT, seed=method.seed).fit(features, given)
    clusters, of_target = np.asarray(kmeans.labels_[len(known) :]), features[len(known) :]
    accuracy = None
    if len(held_out):
        is_right = kmeans.predict(held_out_features) == labels[held_out]
        accuracy = method.held_out_accuracy_, float(np.mean(is_right))
    return FrozenCheck(
        accuracy,
        n_held_out=len(held_out),
        silhouette=(_silhouette(trained, method.labels_[rows]), _silhouette(of_target, clusters)),
        used=(len(np.unique(method.labels_)), method.n_categories_),
        n_used_by_kmeans=len(np.unique(clusters)),
        trained_share=method.trained_share_,
        simple=None if simple is None else {name: _silhouette(of_target, each) for name, each in simple.items()},
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


def simple_results(
    method: Any, pool: FeatureTable, target: FeatureTable, own_classes: Collection[str]
) -> dict[str, Clusters] | None:
    """The clusters of the target by each of `BASELINES`, with the K of a method; None if there are too many images.

    own_classes: names of the labeled classes that the target may show.
    """
    if len(method.class_rows_) + len(target) > MOST_ROWS:
        return None
    inputs = FrozenFeatures(
        np.asarray(target.features, dtype=np.float32),
        np.asarray(pool.features[method.class_rows_], dtype=np.float32),
        method.class_labels_,
        n_known=len(method.known_labels_),
        n_clusters=method.n_categories_,
        n_absent=sum(each.kind == "known" and each.name not in own_classes for each in method.categories_),
        seed=method.seed,
    )
    return {name: simple_clusters(inputs, name) for name in BASELINES}


def baseline_scores(
    results: Mapping[str, Clusters], known: Sequence[str], judged: JudgedPredictions
) -> dict[str, dict[str, Any]]:
    """All, Old and New of clusters by each method, and the same with names; `known` are the names of known classes.

    Images whose label was given are not scored.
    """
    named = classes_named(known, judged.class_names) if judged.class_names else None
    scored = {}
    for method, every in results.items():
        clusters = every[~judged.is_given]
        called = None if named is None else np.append(named, UNLABELED)[np.minimum(clusters, len(known))]
        scores = evaluate(judged.y_true, clusters, judged.is_old, called=called, with_intervals=False).to_dict()
        scored[method] = {each: scores[each] for each in (*GROUPS, "names")}
    return scored
