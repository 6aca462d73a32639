"""The main job on the embedded data: draw, extract, select, count, cluster, evaluate."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from justright.benchmark.frozen import discover_frozen
from justright.benchmark.glyph_problem import GlyphProblem, glyph_problem
from justright.estimation import CategoryCounter, LabeledSearchCounter, MixtureCounter
from justright.evaluation import Scores, evaluate
from justright.features.table import FeatureTable
from justright.progress import Track, silent
from justright.selection import BetaSelector, BinsSelector, CuiSelector, Selector, UniformSelector, save_weights
from justright.types import UNLABELED, Mask

BACKBONE = "glyph_vit"


@dataclass(frozen=True)
class DemoResult:
    """What the demo found, by the name of the selector or counter, and how long each stage took."""

    problem: GlyphProblem
    selectors: dict[str, Selector]
    scores: dict[str, Scores]
    counts: dict[str, CategoryCounter]
    seconds: dict[str, float] = field(default_factory=dict)


def selectors_for(n_clusters: int, seed: int) -> dict[str, Selector]:
    """The selectors of the paper. Beta is hardened (Tab. 6): soft weights act in training, and nothing is trained."""
    return {
        "none": UniformSelector(),
        "cui": CuiSelector(n_clusters=n_clusters, seed=seed),
        "bins": BinsSelector(n_clusters=n_clusters, seed=seed),
        "beta > 0.5": BetaSelector(threshold=0.5),
    }


def run_demo(out: Path, seed: int = 0, track: Track = silent) -> DemoResult:
    """Run every stage and leave its files in `out`; features that are there already are not computed again."""
    seconds: dict[str, float] = {}
    with _timed(seconds, "draw and extract"):
        problem = glyph_problem(seed=seed)
        pool, target = _features(problem, out, track)
    selectors = selectors_for(problem.n_target_classes, seed)
    scores = {}
    y_true, is_old = problem.truth.open_for_evaluation()
    for name, selector in selectors.items():
        with _timed(seconds, "select"):
            selector.fit(pool.features, pool.labels, target.features)
            save_weights(out / f"weights-{name.split()[0]}.json", selector)
        with _timed(seconds, "cluster"):
            kept = selector.selected_classes_.tolist()
            clusters = discover_frozen(
                pool.features,
                pool.labels,
                target.features,
                kept,
                problem.own_classes,
                problem.n_target_classes,
                seed=seed,
            )
        with _timed(seconds, "evaluate"):
            has_kept_labels = _has_kept_labels(problem, kept, y_true)
            scores[name] = evaluate(y_true, clusters, is_old, has_kept_labels=has_kept_labels, seed=seed)
            scores[name].save(out / f"scores-{name.split()[0]}.json")
    with _timed(seconds, "count categories"):
        counts = _count(problem, pool, target, seed, track)
    return DemoResult(problem, selectors, scores, counts, seconds)


def _features(problem: GlyphProblem, out: Path, track: Track) -> tuple[FeatureTable, FeatureTable]:
    from justright.features.backbone import load_backbone
    from justright.features.cache import FeatureCache
    from justright.features.extract import extract

    backbone, cache = load_backbone(BACKBONE), FeatureCache()
    pool = extract(problem.pool.images, backbone, out / "pool.features", cache=cache, overwrite=True, track=track)
    target = extract(
        problem.split.unlabeled, backbone, out / "target.features", cache=cache, overwrite=True, track=track
    )
    return pool, target


def _has_kept_labels(problem: GlyphProblem, kept: list[int], y_true: np.ndarray) -> Mask:
    """Whether the selection kept the labels of an image's class."""
    names = {problem.pool.origins[label].label for label in kept if label in problem.own_classes}
    return np.isin(y_true, list(names))


def _count(
    problem: GlyphProblem, pool: FeatureTable, target: FeatureTable, seed: int, track: Track
) -> dict[str, CategoryCounter]:
    """K by the target's own labeled part: classes of other scripts say nothing about its own."""
    own = np.isin(pool.labels, problem.own_classes)
    features = np.concatenate([pool.features[own], target.features])
    labels = np.concatenate([pool.labels[own], np.full(len(target), UNLABELED)])
    counters: dict[str, CategoryCounter] = {
        "labeled-search": LabeledSearchCounter(max_k=300, seed=seed),
        "mixture": MixtureCounter(seed=seed),
    }
    return {name: counter.fit(features, labels, track) for name, counter in counters.items()}


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[stage] = seconds.get(stage, 0.0) + time.perf_counter() - started
