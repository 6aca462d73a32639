"""The labels of Tab. 1 on photos: classes of the target's data set, by their similarity to the new ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.study_grades import GRADES, grades_of, similarity

from justright.benchmark.problems import problem_of
from justright.benchmark.suite import read_suite
from justright.features.backbone import load_backbone

SUITE = read_suite("tab1", "real")
TARGETS = ("birds", "fruits", "leaves", "pets")
PROBLEMS = {problem.name: problem for problem in SUITE.problems}


def opened(name, data, **changes):
    return problem_of(replace(PROBLEMS[name], **changes), data)


@pytest.mark.parametrize("target", TARGETS)
def test_all_rows_have_the_same_new_classes_and_no_label_of_them(target, real_data):
    news = []
    for row in ("original", "out of domain", *GRADES):
        problem = opened(f"{target}, {row} labels", real_data)
        labels, is_old = problem.truth.open_for_evaluation()
        news.append(set(labels[~is_old].tolist()))
        if row != "out of domain":
            labeled = {origin.label for origin in problem.pool.origins}
            grades = PROBLEMS[f"{target}, {row} labels"].grades
            assert labeled == {label for name in (GRADES if row == "original" else (row,)) for label in grades[name]}
            assert not labeled & news[-1]
    assert len(news[0]) == 15
    assert all(each == news[0] for each in news)


def test_grades_have_equally_many_classes():
    for target in TARGETS:
        sizes = {len(PROBLEMS[f"{target}, original labels"].grades[name]) for name in GRADES}
        assert sizes == ({15} if target in ("birds", "fruits") else {7})


@pytest.mark.parametrize("target", TARGETS)
def test_similar_classes_are_nearer_than_medium_and_these_nearer_than_dissimilar_ones(target, real_data):
    problem = PROBLEMS[f"{target}, original labels"]
    backbone = load_backbone(SUITE.run["backbone"], img_size=SUITE.run["img_size"])
    few = similarity(opened(problem.name, real_data, per_class=4), backbone)  # a class may have no labeled image
    grades = [[few[label] for label in problem.grades[name] if label in few] for name in GRADES]
    assert min(map(len, grades)) >= 5
    similar, medium, dissimilar = map(np.mean, grades)
    assert similar > medium > dissimilar


def test_grades_are_both_ends_and_the_middle_of_the_ranking():
    similar = dict(enumerate([0.1, 0.9, 0.5, 0.7, 0.3, 0.2, 0.8]))
    assert grades_of(similar, n_new=5) == {"similar": [1, 6], "medium": [2, 3], "dissimilar": [0, 5]}
    assert grades_of(similar, n_new=1) == {"similar": [1], "medium": [2], "dissimilar": [0]}
