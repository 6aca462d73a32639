"""Was training worth it? Asked without a label of the target, against k-means on the features as they were before."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from justright.clustering import SemiSupKMeans
from justright.clustering.principal import in_directions, principal_directions
from justright.evaluation import evaluate
from justright.evaluation.scores import GROUPS
from justright.features.table import FeatureTable
from justright.runs.baselines import ScoresByMethod, judged_rows
from justright.utils.types import UNLABELED, Array, Labels, Mask

MOST_IMAGES = 20_000  # of the target that are clustered
N_COMPARED = 2_000  # of those, for the silhouette, whose time grows with the square
N_INIT = 3
# How far apart the trained clusters must lie, as a share of what k-means reaches on its own ground. How often that was
# right on problems that nothing was chosen on: docs/discovery.md
LEAST_SHARE = 0.5
# Of the categories that have images by k-means so many must have some: a training that was cut short leaves many
# without. Known classes that the target does not show have none in either.
LEAST_USED = 0.8
# A training that had time for less than this share of its epochs must do better than that: docs/discovery.md
LEAST_TRAINED = 0.2
LEAST_SHARE_CUT_SHORT, LEAST_USED_CUT_SHORT = 0.9, 0.95

FROZEN = "k-means on frozen features"
KEPT = ("found_again", "n_held_out", "silhouette", "used", "scores", "trained_share", "baselines")


@dataclass(frozen=True, eq=False)
class FrozenCheck:
    """What speaks for the trained result and what for k-means on frozen features; a pair has the trained one first.

    Attributes:
        found_again: share of held-out labeled images that are put into their class; None where none were held out.
        n_held_out: how many these are; a few more or fewer of them found are noise.
        silhouette: how far clusters of the target lie apart, each in its own features, in as many principal directions
            where k-means takes such.
        used: how many categories have images after training, and how many there are.
        trained_share: share of the planned epochs that there was time for; 1 unless `minutes` ended training.
        clusters: of the `clustered_rows` of the target, by k-means; known classes first, as in the method.
        scores: All, Old and New of k-means, where the truth is known; the recommendation does not see them.
        baselines: the same of every simple method, also if names count; None where they were not computed.
    """

    found_again: tuple[float, float] | None
    n_held_out: int
    silhouette: tuple[float, float]
    used: tuple[int, int]
    clusters: Int[Array, " clustered"] = field(repr=False)
    scores: dict[str, object] | None = None
    trained_share: float = 1.0
    baselines: ScoresByMethod | None = None

    @property
    def is_worth_it(self) -> bool:
        """Whether the trained result is recommended."""
        if self.found_again is not None:
            trained, frozen = self.found_again
            both = (trained + frozen) / 2  # of all found again, as if it made no difference
            noise = math.sqrt(2 * both * (1 - both) / self.n_held_out)
            if frozen - trained > 2 * noise:
                return False
        share, used = (LEAST_SHARE_CUT_SHORT, LEAST_USED_CUT_SHORT) if self.is_cut_short else (LEAST_SHARE, LEAST_USED)
        trained, frozen = self.silhouette
        is_apart = trained >= min(share * frozen, frozen)  # a share of less than 0 would be more than all of it
        return is_apart and self.used[0] >= used * len(np.unique(self.clusters))

    @property
    def is_cut_short(self) -> bool:
        """Whether there was time for too few epochs."""
        return self.trained_share < LEAST_TRAINED

    def note(self, method: str) -> str:
        """Both results and the recommendation, in a sentence."""
        said = [f"clusters apart by {self.silhouette[0]:.2f} ({method}) and {self.silhouette[1]:.2f} ({FROZEN})"]
        if self.found_again is not None:
            again = "{:.0%} and {:.0%}".format(*self.found_again)
            said.insert(0, f"of held-out labeled images {again} are found again")
        if self.used[0] < self.used[1]:
            said.append(f"{self.used[0]:,} of {self.used[1]:,} categories have images")
        if self.is_cut_short:
            said.append(f"there was time for {self.trained_share:.0%} of the epochs")
        if self.is_worth_it:
            return f"checked against {FROZEN}: {', '.join(said)}; the trained result is recommended"
        what = "training was cut short and did not help" if self.is_cut_short else "training did not help"
        more = ", or give it more --minutes" if self.is_cut_short else ""
        return f"{what}, {', '.join(said)}: take {FROZEN} instead, --method kmeans --out another-folder{more}"

    def scored(self, y_true: Labels, is_old: Mask, is_given: Bool[Array, " target"] | None = None) -> FrozenCheck:
        """The same with the accuracies of k-means, from the true labels of the target.

        Images whose label was given are not judged: `is_given` tells which of all they are, and y_true lacks them.
        """
        is_given = np.zeros(len(y_true), dtype=bool) if is_given is None else is_given
        is_judged, rows = judged_rows(clustered_rows(len(is_given)), is_given)
        found = evaluate(y_true[rows], self.clusters[is_judged], is_old[rows], n_resamples=0).to_dict()
        return replace(self, scores={group: found[group] for group in GROUPS})

    def to_json(self, method: str) -> dict[str, Any]:
        """Plain values."""
        kept = {name: getattr(self, name) for name in KEPT}
        return kept | {"recommended": method if self.is_worth_it else "kmeans"}


def frozen_check(method: Any, pool: FeatureTable, target: FeatureTable) -> FrozenCheck:
    """Compare a method that was trained with clusters of frozen features of the same images.

    Parameters:
        method: after `fit`.
        pool, target: features before training.
    """
    rows, held_out = clustered_rows(len(target)), method.held_out_rows_
    labels = np.searchsorted(method.known_labels_, pool.labels)  # known class k is cluster k
    known = method.labeled_rows_
    features = np.concatenate([np.asarray(pool.features[known]), np.asarray(target.features[rows])])
    given = np.concatenate([labels[known], np.where(method.is_given_, method.labels_, UNLABELED)[rows]])
    n_clusters = min(method.n_categories_, len(set(given.tolist()) - {UNLABELED}) + int(np.sum(given == UNLABELED)))
    held_out_features, trained = np.asarray(pool.features[held_out]), method.features_[rows]
    if method.config_.in_directions(method.backbone.cut.ends_in_norm):  # as `--method kmeans` would
        axes = principal_directions(features, n_clusters)
        features, held_out_features = (in_directions(each, *axes) for each in (features, held_out_features))
        # in few directions all clusters lie farther apart, so those of both results are compared in as many
        trained = in_directions(trained, *principal_directions(trained, n_clusters))
    else:
        trained = method.assigner_.compared(trained)
    clusters = SemiSupKMeans(n_clusters, n_init=N_INIT, seed=method.seed).fit(features, given)
    found = np.asarray(clusters.labels_[len(known) :])
    again = None
    if len(held_out):
        again = method.held_out_accuracy_, float(np.mean(clusters.predict(held_out_features) == labels[held_out]))
    apart = _silhouette(trained, method.labels_[rows]), _silhouette(features[len(known) :], found)
    used = len(np.unique(method.labels_)), method.n_categories_
    return FrozenCheck(again, len(held_out), apart, used, found, trained_share=method.trained_share_)


def clustered_rows(n_target: int) -> Int[Array, " clustered"]:
    """The images of the target that are compared: all, or evenly spaced ones where there are too many."""
    return np.arange(0, n_target, -(-n_target // MOST_IMAGES))


def _silhouette(features: Float[Array, "images dim"], cluster: Int[Array, " images"]) -> float:
    """The silhouette, from -1 to 1, by cosine, over a part of the images; -1 for a single cluster."""
    from sklearn.metrics import silhouette_score

    step = -(-len(features) // N_COMPARED)
    features, cluster = features[::step], cluster[::step]
    if not 1 < len(np.unique(cluster)) < len(cluster):
        return -1.0
    return float(silhouette_score(features, cluster, metric="cosine"))
