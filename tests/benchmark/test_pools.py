"""No class of a target's new categories may be labeled: then it would not be new."""

from __future__ import annotations

import pytest
from tests.conftest import SHARED

from justright.benchmark.problems import problem_of
from justright.benchmark.suite import PROFILES, SuiteProblem, read_suite, suite_names
from justright.utils.errors import MissingDataError

SUITES = [
    (name, profile)
    for name in suite_names()
    for profile in ([each for each in PROFILES if each != "full"] if read_suite(name).columns else [None])
]


def labeled_new_classes(problem):
    truth = problem.truth._images.table["class_name"].to_pylist()
    _, is_old = problem.truth.open_for_evaluation()
    new = {name for name, old in zip(truth, is_old, strict=True) if not old}
    return new & {origin.class_name for origin in problem.pool.origins}


@pytest.mark.parametrize(("name", "profile"), SUITES)
def test_no_new_class_is_labeled_in_any_problem(name, profile):
    missing = 0
    for description in read_suite(name, profile).problems:
        try:
            problem = problem_of(description, SHARED / "data")
        except MissingDataError:
            missing += 1
            continue
        assert not labeled_new_classes(problem), description.name
    if missing:
        pytest.skip(f"the photos of {missing} problems are not here")


def test_labeled_new_class_is_detected():
    source = "glyphs:per_class=4,scripts=lao"
    assert labeled_new_classes(problem_of(SuiteProblem("lao", source, {"same": source})))


def test_imagenet_is_not_in_the_pool_of_its_own_part():
    pools = {problem.target.partition(":")[0]: problem.pool for problem in read_suite("tab3", "full").problems}
    assert "imagenet1k-ssb" not in pools["imagenet100"]
    assert "imagenet100" not in pools["imagenet1k-ssb"]
    assert {"imagenet100", "imagenet1k-ssb"} <= set(pools["nabirds"])
