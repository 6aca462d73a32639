"""Grade the classes of a data set by their similarity to those that are new in Tab. 1.

    python benchmarks/study_grades.py --profile real --data DATA
    python benchmarks/study_grades.py --profile glyphs

Prints the `grades` of src/justright/benchmark/suites/shared/PROFILE.toml, and how similar each grade is. The similarity
of a class is the cosine of its centroid to that of the nearest new class, on the network of the profile. The grades are
the most similar classes, those in the middle and the least similar ones: as many as there are new ones, or a third.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from justright import load_backbone
from justright.benchmark.problems import problem_of
from justright.benchmark.suite import SuiteProblem, read_suite
from justright.features.backbone import Backbone
from justright.features.extract import extract
from justright.geometry import unit_rows
from justright.runs.problem import Problem
from justright.utils.types import Array, Labels

GRADES = ("similar", "medium", "dissimilar")


def similarity(problem: Problem, backbone: Backbone) -> dict[int, float]:
    """The cosine of the centroid of each labeled class to that of the nearest new one, by the label in its data set."""
    images, target = problem.pool.images, problem.target
    with tempfile.TemporaryDirectory() as folder:
        labeled = np.asarray(extract(images, backbone, Path(folder) / "labeled.features").features)
        unlabeled = np.asarray(extract(target, backbone, Path(folder) / "target.features").features)
    truth, is_old = problem.truth.open_for_evaluation()
    nearest = (_centroids(labeled, images.labels) @ _centroids(unlabeled[~is_old], truth[~is_old]).T).max(axis=1)
    labels = [problem.pool.origins[label].label for label in np.unique(images.labels)]
    return dict(zip(labels, nearest.tolist(), strict=True))


def _centroids(features: Array, labels: Labels) -> Array:
    unit = unit_rows(features)
    return unit_rows(np.stack([unit[labels == label].mean(axis=0) for label in np.unique(labels)]))


def ungraded(problem: SuiteProblem) -> SuiteProblem:
    """The same new classes, and all others of their data set labeled."""
    return replace(problem, labels=(), grades={}, old_share=0.0, other_classes_in_pool=True)


def grades_of(similar: Mapping[int, float], n_new: int) -> dict[str, list[int]]:
    """The most similar classes, those in the middle of the ranking and the least similar ones, as many of each."""
    ranked = sorted(similar, key=lambda label: (-similar[label], label))
    n = min(n_new, len(ranked) // len(GRADES))
    starts = 0, (len(ranked) - n) // 2, len(ranked) - n
    return {name: sorted(ranked[first : first + n]) for name, first in zip(GRADES, starts, strict=True)}


def main() -> None:
    """Print the grades of every target of Tab. 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", choices=("real", "glyphs"), required=True)
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    suite = read_suite("tab1", options.profile)
    backbone = load_backbone(suite.run["backbone"], img_size=suite.run.get("img_size"))
    for problem in (each for each in suite.problems if each.name.endswith(", similar labels")):
        similar = similarity(problem_of(ungraded(problem), options.data), backbone)
        grades = grades_of(similar, problem.classes)
        print(f"{problem.name.partition(',')[0]}, {len(similar)} classes that are not new")
        print(f"grades = {{ {', '.join(f'{name} = {labels}' for name, labels in grades.items())} }}")
        for name, labels in grades.items():
            values = [similar[label] for label in labels]
            print(f"  {name}: {len(labels)} classes, {min(values):.2f} to {max(values):.2f}")


if __name__ == "__main__":
    main()
