"""Time the search for K on 6,000 x 768 features against the same search with a new scikit-learn fit for each K.

    python benchmarks/bench_estimate.py

200 classes; K is searched between the number of labeled classes and 1,000. One thread, CPU seconds. There are two kinds
of draws. Where classes are far apart and nearly all of them are labeled, both searches must find the true K in every
draw. Where classes overlap and half of them are labeled, accuracy hardly depends on K near the truth, so either search
may be off. The first kind was added because the searches disagreed on the second. Estimation by split and merge is
timed too.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from measuring import timed
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from justright import LabeledSearchCounter, MixtureCounter
from justright.estimation.labeled_search import _best, _brent
from justright.evaluation import Counts, match_counts

GOAL = 5
N_IMAGES, N_CLASSES, DIM, MAX_K = 6_000, 200, 768, 1_000


def draw(noise: float, decay: float, n_labeled_classes: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    spectrum = (1 + np.arange(DIM)) ** -decay
    y = rng.permutation(np.arange(N_IMAGES) % N_CLASSES)
    x = (rng.standard_normal((N_CLASSES, DIM))[y] + noise * rng.standard_normal((N_IMAGES, DIM))) * spectrum
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x.astype(np.float32), np.where((y < n_labeled_classes) & (rng.random(N_IMAGES) < 0.5), y, -1)


def search_with_scikit_learn(x: Any, labels: Any) -> tuple[int, int]:
    """The K found and the number of fits."""
    known = labels >= 0

    def count(k: int) -> tuple[int, Counts]:
        clusters = KMeans(k, random_state=0).fit(x).labels_
        return k, Counts.of(labels[known], clusters[known].astype(np.int64))

    seen = _brent(count, len(np.unique(labels[known])), MAX_K)
    return _best({k: match_counts(counts).accuracy for k, counts in seen.items()}), len(seen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=3, help="of the first kind; one of the second follows")
    parser.add_argument("--skip-overlapping", action="store_true")
    options = parser.parse_args()
    draws = [("far apart", 0.05, 0.0, 190, seed) for seed in range(options.draws)]
    draws += [] if options.skip_overlapping else [("overlapping", 0.7, 0.5, 100, 0)]
    ratios, n_same = [], 0
    for what, *shape in draws:
        x, labels = draw(*shape)
        _, ours, counter = timed(lambda x=x, labels=labels: LabeledSearchCounter(max_k=MAX_K).fit(x, labels))
        print(f"{what}: ours K = {counter.n_categories_} from {len(counter.curve_)} fits in {ours:.1f} s", flush=True)
        _, theirs, (k, n_fits) = timed(lambda x=x, labels=labels: search_with_scikit_learn(x, labels))
        print(f"  scikit-learn K = {k} from {n_fits} fits in {theirs:.1f} s: {theirs / ours:.1f} times", flush=True)
        if what == "far apart":
            ratios.append(theirs / ours)
            n_same += k == counter.n_categories_
    _, mixture, other = timed(lambda: MixtureCounter().fit(x, labels))
    print(f"  split and merge K = {other.n_categories_} in {len(other.curve_) - 1} rounds, {mixture:.1f} s")
    is_met = min(ratios) >= GOAL and n_same == options.draws
    verdict = "met" if is_met else "MISSED"
    print(
        f"far apart: at least {min(ratios):.1f} times (goal {GOAL}), same K in {n_same} of {options.draws}: {verdict}"
    )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
