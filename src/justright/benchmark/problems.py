"""The problem that a suite describes: images opened, split and, if requested, given wrong labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from justright.benchmark.suite import SuiteProblem
from justright.data import ClassSplit, ImageSet, Truth, gcd_split, merge_pool, open_images
from justright.data.columns import column, with_columns
from justright.data.splits import SSB_NAMES, UNGRADED, exchanged, published_split, random_half
from justright.runs.problem import OWN, Problem
from justright.utils.errors import DataError
from justright.utils.hashing import hash_value
from justright.utils.seeding import generator

REST = "rest of the target's source"
PUBLISHED, HALF = "published", "half"  # values of `roles`
DATA = "{data}"  # in a source: the folder with the data
OTHER_CLASSES = "rest"  # in `labels`: the classes of the target's source that were not drawn


def problem_of(description: SuiteProblem, data: Path | None = None) -> Problem:
    """Open, draw, split and merge. The result depends on the description and the files alone."""
    seed, source = description.split_seed, _capped(description, description.target, data)
    others = [_pool_set(description, place, data).named(name) for name, place in description.pool.items()]
    own: list[ImageSet] = []
    roles: ClassSplit | None
    if description.labels:
        target, roles = _with_other_labels(description, source, data)
    else:
        target = _uneven(source.of_classes(_chosen(description, source)), description.uneven, seed)
        roles = None if description.old_share == 0 else _roles(description, target)
    if description.other_classes_in_pool:
        others.append(source.of_classes(sorted(set(source.classes) - set(target.classes))).named(REST))
    unlabeled, truth = target.without_labels(), Truth(target, ())
    if roles is not None:
        split, truth = gcd_split(target.named(OWN), roles, description.labeled_share, seed)
        own, unlabeled = [split.labeled], split.unlabeled
    merged = merge_pool([*own, *(_pool_part(description, images) for images in others)])
    problem = Problem(merged, unlabeled, truth, len(target.classes))
    return _with_wrong_labels(problem, description.wrong_labels, seed)


def images_fingerprint(problem: Problem) -> str:
    """A fingerprint of names and classes of the images, without reading their files."""
    sets = problem.pool.images, problem.target
    return hash_value([[images.paths, images.labels.tolist()] for images in sets], size=8)


def is_in_data(description: SuiteProblem) -> bool:
    """Whether some of the images are in the folder `{data}`."""
    return any(DATA in place for place in (description.target, *description.pool.values(), *description.labels))


def _capped(description: SuiteProblem, place: str, data: Path | None) -> ImageSet:
    return _at_most(_open(place, data), description.per_class, description.split_seed)


def _chosen(description: SuiteProblem, images: ImageSet) -> list[int]:
    """The classes drawn from a source, in ascending order."""
    labels = generator(description.split_seed, "suite classes").permutation(sorted(images.classes))
    return sorted(labels[: description.classes or len(labels)].tolist())


def _roles(description: SuiteProblem, images: ImageSet) -> ClassSplit:
    """Which classes of a set are old: as published, a random half, or a random share."""
    if description.roles == HALF:
        return random_half(images.classes, description.split_seed)
    if description.roles:
        return published_split(images, None if description.roles == PUBLISHED else description.roles)[0]
    chosen = sorted(images.classes)
    n_old = max(1, round(description.old_share * len(chosen)))
    shuffled = generator(description.split_seed, "suite old classes").permutation(chosen).tolist()
    return ClassSplit(tuple(sorted(shuffled[:n_old])), {UNGRADED: tuple(sorted(shuffled[n_old:]))})


def _pool_set(description: SuiteProblem, place: str, data: Path | None) -> ImageSet:
    """A set of the pool: all of it, or the images that the protocol would label if it were the target."""
    if not description.pool_by_protocol:
        return _open(place, data)
    images = _capped(description, place, data)
    images = images.of_classes(_chosen(description, images))
    as_target = replace(description, old_share=description.old_share or 0.5)
    return gcd_split(images, _roles(as_target, images), description.labeled_share, description.split_seed)[0].labeled


def _with_other_labels(description: SuiteProblem, source: ImageSet, data: Path | None) -> tuple[ImageSet, ClassSplit]:
    """A target with new classes from its source and old ones from what `labels` names.

    With a difficulty group of SSB its classes become old, and the published old classes become new (Tab. 1).
    """
    draw, n = generator(description.split_seed, "suite labels"), description.classes
    if description.grades:
        graded = [label for name in description.labels for label in description.grades[name]]
        roles = ClassSplit(tuple(sorted(graded)), {UNGRADED: tuple(_chosen(description, source))})
        return source.of_classes(roles.old + roles.new), roles
    if description.labels[0] in SSB_NAMES:
        roles = exchanged(_roles(description, source), description.labels[0], source)
        old, new = (sorted(draw.permutation(classes)[: n or None].tolist()) for classes in (roles.old, roles.new))
        return source.of_classes(old + new), ClassSplit(tuple(old), {UNGRADED: tuple(new)})
    chosen = _chosen(description, source)
    rest = sorted(set(source.classes) - set(chosen))
    sets = [
        source.of_classes(rest) if place == OTHER_CLASSES else _capped(description, place, data)
        for place in description.labels
    ]
    named_sets = [images.named(f"labels {number}") for number, images in enumerate(sets)]
    merged = merge_pool([source.of_classes(chosen).named("new"), *named_sets]).images
    labels = sorted(merged.classes)
    new, old = labels[: len(chosen)], sorted(draw.permutation(labels[len(chosen) :])[: n or None].tolist())
    return merged.of_classes(new + old), ClassSplit(tuple(old), {UNGRADED: tuple(new)})


def _open(place: str, data: Path | None) -> ImageSet:
    if DATA in place and data is None:
        raise DataError(f"{place} needs the folder with the data", advice="--data FOLDER")
    source, _, part = place.replace(DATA, str(data)).partition("#")
    images = open_images(source)
    return images.of_split(part) if part else images


def _pool_part(description: SuiteProblem, images: ImageSet) -> ImageSet:
    """A set of the pool, with at most `pool_classes` classes and `pool_per_class` images of each."""
    if n := description.pool_classes:
        images = images.of_classes(sorted(images.classes)[:: max(1, len(images.classes) // n)][:n])
    return _at_most(images, description.pool_per_class, description.split_seed)


def _at_most(images: ImageSet, per_class: int | None, seed: int) -> ImageSet:
    if per_class is None:
        return images
    rows = [
        generator(seed, "suite images", int(label)).permutation(np.flatnonzero(images.labels == label))[:per_class]
        for label in images.classes
    ]
    return images.take(np.sort(np.concatenate(rows)))


def _uneven(images: ImageSet, sizes: tuple[int, ...], seed: int) -> ImageSet:
    """Class sizes from the largest to the smallest in equal ratios, the classes in random order."""
    if not sizes:
        return images
    classes = generator(seed, "suite sizes").permutation(sorted(images.classes)).tolist()
    largest, smallest = sizes
    counts = np.geomspace(largest, smallest, num=len(classes)).round().astype(int)
    parts = [_at_most(images.of_classes([label]), int(n), seed) for label, n in zip(classes, counts, strict=True)]
    return ImageSet.concat(parts)


def _with_wrong_labels(problem: Problem, share: float, seed: int) -> Problem:
    """Give some images of the pool the label of another class of their data set. Own labels stay correct."""
    if share == 0:
        return problem
    images, origins = problem.pool.images, problem.pool.origins
    labels = images.labels.copy()
    draw = generator(seed, "wrong labels")
    dataset = np.array([origins[label].dataset for label in labels.tolist()], dtype=object)
    for name in dict.fromkeys(dataset[problem.other_rows].tolist()):
        rows = np.flatnonzero(dataset == name)
        wrong, classes = draw.permutation(rows)[: round(share * len(rows))], np.unique(labels[rows])
        # a step of 1 to n - 1 around the circle of n classes always changes the class
        step = draw.integers(1, len(classes), size=len(wrong))
        labels[wrong] = classes[(np.searchsorted(classes, labels[wrong]) + step) % len(classes)]
    names = [images.classes[label] for label in labels.tolist()]
    changed = {"label": column("label", labels, len(images)), "class_name": column("class_name", names, len(images))}
    table = with_columns(images.table, changed)
    return replace(problem, pool=replace(problem.pool, images=ImageSet(table, images.readers)))
