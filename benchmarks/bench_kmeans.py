"""Time semi-supervised k-means against a plain version of the public algorithm, and scikit-learn's without labels.

    python benchmarks/bench_kmeans.py [cub|large]

cub is 6,000 x 768 with K = 200, large is 50,000 x 768 with K = 1,000. One thread, CPU seconds. The plain version
computes distances one cluster at a time, means in a loop over clusters, and in k-means++ all distances again for each
new centroid, as the public code does. At size cub one restart of it is run; at size large its time is the number of
distance columns times the measured time of one, without the means. A second plain version keeps the smallest distance
while seeding. All draw the same random numbers, so they start from the same centroids.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from measuring import in_turns, timed
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from justright.clustering import SemiSupKMeans
from justright.utils.seeding import generator

SIZES = {"cub": (6_000, 200, 100), "large": (50_000, 1_000, 20)}


def draw(n_images: int, n_classes: int, dim: int = 768) -> tuple[Any, Any]:
    """Unit features of overlapping classes with a falling spectrum; half the images of half the classes labeled."""
    rng = np.random.default_rng(0)
    spectrum = (1 + np.arange(dim)) ** -0.5
    y = rng.integers(n_classes, size=n_images)
    x = (rng.standard_normal((n_classes, dim))[y] + rng.standard_normal((n_images, dim))) * spectrum
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x.astype(np.float32), np.where((y < n_classes // 2) & (rng.random(n_images) < 0.5), y, -1)


def column(x: Any, centroid: Any) -> Any:
    return ((x - centroid) ** 2).sum(axis=1)


def plain_restart(x: Any, labels: Any, n_clusters: int, max_iter: int, tol: float) -> tuple[float, int]:
    """One restart of the public algorithm: its inertia and number of iterations."""
    labeled, unlabeled = x[labels >= 0], x[labels < 0]
    classes, cluster_of_labeled = np.unique(labels[labels >= 0], return_inverse=True)
    seeds = [labeled[cluster_of_labeled == k].mean(axis=0) for k in range(len(classes))]
    for u in generator(0, "k-means++", 0).random(n_clusters - len(classes)):
        running = np.cumsum(np.min([column(unlabeled, c) for c in seeds], axis=0), dtype=np.float64)
        seeds.append(unlabeled[np.flatnonzero(running > u * running[-1])[0]])
    centroids = np.stack(seeds)
    inertia, n_iter, shift = np.inf, 0, np.inf
    while n_iter < max_iter and shift**2 >= tol:
        n_iter += 1
        old = centroids.copy()
        distance = np.stack([column(unlabeled, c) for c in centroids], axis=1)
        cluster = distance.argmin(axis=1)
        inertia = float(distance.min(axis=1).sum() + ((labeled - centroids[cluster_of_labeled]) ** 2).sum())
        for k in range(n_clusters):
            centroids[k] = np.concatenate([labeled[cluster_of_labeled == k], unlabeled[cluster == k]]).mean(axis=0)
        shift = np.linalg.norm(centroids - old, axis=1).sum()
    return inertia, n_iter


def against_plain(size: str) -> None:
    n_images, n_clusters, max_iter = SIZES[size]
    x, labels = draw(n_images, n_clusters)
    runs = [timed(lambda: SemiSupKMeans(n_clusters, n_init=1, max_iter=max_iter).fit(x, labels)) for _ in range(2)]
    _, ours, kmeans = min(runs, key=lambda run: run.cpu)
    unlabeled = x[labels < 0]
    per_column = min(timed(lambda: [column(unlabeled, x[k]) for k in range(8)]).cpu / 8 for _ in range(3))
    # with j centroids there, the public seeding looks at all j before it draws the next one
    n_seeding = sum(range(len(kmeans.classes_), n_clusters))
    if size == "cub":
        _, plain, (inertia, n_iter) = timed(lambda: plain_restart(x, labels, n_clusters, max_iter, 1e-4))
        print(f"  inertia: ours {kmeans.inertia_:.2f} in {kmeans.n_iter_} iterations, plain {inertia:.2f} in {n_iter}")
    else:
        plain = per_column * (n_seeding + n_clusters * (1 + kmeans.n_iter_))
    remembering = plain - per_column * (n_seeding - n_clusters)
    how = "run to its end" if size == "cub" else "extrapolated"
    print(f"  ours, one restart {ours:.2f} s; the public algorithm {plain:.0f} s ({how}): {plain / ours:.0f} times")
    print(f"  with the second plain version {remembering:.0f} s (extrapolated): {remembering / ours:.0f} times")


def against_scikit_learn(size: str) -> None:
    n_images, n_clusters, max_iter = SIZES[size]
    x, _ = draw(n_images, n_clusters)
    start = x[np.random.default_rng(0).choice(n_images, n_clusters, replace=False)]
    n_candidates = 2 + int(np.log(n_clusters))  # what scikit-learn tries per step
    for what, init in (("same first centroids", start), ("k-means++ on both sides", None)):
        if init is None and size == "large":
            continue  # minutes of seeding on the other side
        run = SemiSupKMeans(
            n_clusters, n_init=1, init=init, n_candidates=n_candidates, max_iter=max_iter, tol=0.0, normalize=False
        )
        theirs = KMeans(n_clusters, init="k-means++" if init is None else init, n_init=1, max_iter=max_iter, tol=0)
        calls = {"ours": lambda run=run: run.fit(x), "theirs": lambda theirs=theirs: theirs.fit(x)}
        timings = in_turns(calls, 3 if size == "cub" else 1)
        our_seconds, their_seconds = (min(each.cpu for each in timings[name]) for name in calls)
        print(f"  {what}: {their_seconds / our_seconds:.1f} times")
        print(f"    ours         {our_seconds:6.2f} s, inertia {run.inertia_:.2f} in {run.n_iter_} iterations")
        print(f"    scikit-learn {their_seconds:6.2f} s, inertia {theirs.inertia_:.2f} in {theirs.n_iter_} iterations")


if __name__ == "__main__":
    for name in sys.argv[1:] or SIZES:
        with threadpool_limits(1):
            print(f"{name}: {SIZES[name][0]:,} x 768, K = {SIZES[name][1]:,}")
            against_plain(name)
            against_scikit_learn(name)
