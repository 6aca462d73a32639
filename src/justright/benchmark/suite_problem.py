"""The problem that a suite describes: images opened, split and, where it says so, spoiled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from justright.benchmark.suite import SuiteProblem
from justright.data import ClassSplit, ImageSet, Truth, gcd_split, merge_pool, open_images
from justright.data.class_split import UNGRADED
from justright.data.columns import column, with_columns
from justright.errors import DataError
from justright.runs.problem import OWN, Problem, named
from justright.seeding import generator

REST = "rest of the target's source"


def problem_of(described: SuiteProblem, data: Path | None = None) -> Problem:
    """Open, draw, split and merge; a function of the description and the files alone."""
    seed = described.split_seed
    source = _at_most(_open(described.target, data), described.per_class, seed)
    labels = generator(seed, "suite classes").permutation(sorted(source.classes))
    chosen = sorted(labels[: described.classes or len(labels)].tolist())
    target = source.of_classes(chosen)
    own: list[ImageSet] = []
    unlabeled, truth = target.without_labels(), Truth(target, ())
    if described.old_share > 0:
        n_old = max(1, round(described.old_share * len(chosen)))
        shuffled = generator(seed, "suite old classes").permutation(chosen).tolist()
        roles = ClassSplit(tuple(sorted(shuffled[:n_old])), {UNGRADED: tuple(sorted(shuffled[n_old:]))})
        split, truth = gcd_split(named(target, OWN), roles, described.labeled_share, seed)
        own, unlabeled = [split.labeled], split.unlabeled
    others = [named(_open(place, data), name) for name, place in described.pool.items()]
    if described.other_classes_in_pool:
        others.append(named(source.of_classes(sorted(set(labels.tolist()) - set(chosen))), REST))
    merged = merge_pool([*own, *(_at_most(each, described.pool_per_class, seed) for each in others)])
    problem = Problem(merged, unlabeled, truth, len(chosen))
    return _with_wrong_labels(problem, described.wrong_labels, seed)


def _open(place: str, data: Path | None) -> ImageSet:
    if "{data}" in place and data is None:
        raise DataError(f"{place} lies in a folder that was not named", advice="--data FOLDER")
    source, _, part = place.replace("{data}", str(data)).partition("#")
    images = open_images(source)
    return images.of_split(part) if part else images


def _at_most(images: ImageSet, per_class: int | None, seed: int) -> ImageSet:
    if per_class is None:
        return images
    rows = [
        generator(seed, "suite images", int(label)).permutation(np.flatnonzero(images.labels == label))[:per_class]
        for label in images.classes
    ]
    return images.take(np.sort(np.concatenate(rows)))


def _with_wrong_labels(problem: Problem, share: float, seed: int) -> Problem:
    """Some images of the pool under the label of another class of their data set; own labels stay right."""
    if share == 0:
        return problem
    images, origins = problem.pool.images, problem.pool.origins
    labels = images.labels.copy()
    draw = generator(seed, "wrong labels")
    dataset = np.array([origins[label].dataset for label in labels.tolist()], dtype=object)
    for name in dict.fromkeys(dataset[problem.other_rows].tolist()):
        rows = np.flatnonzero(dataset == name)
        wrong, classes = draw.permutation(rows)[: round(share * len(rows))], np.unique(labels[rows])
        # a step of 1 to n - 1 along the circle of classes never ends where it began
        step = draw.integers(1, len(classes), size=len(wrong))
        labels[wrong] = classes[(np.searchsorted(classes, labels[wrong]) + step) % len(classes)]
    names = [images.classes[label] for label in labels.tolist()]
    changed = {"label": column("label", labels, len(images)), "class_name": column("class_name", names, len(images))}
    table = with_columns(images.table, changed)
    return replace(problem, pool=replace(problem.pool, images=ImageSet(table, images.readers)))
