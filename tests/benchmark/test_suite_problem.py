from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from justright.benchmark.suite import SuiteProblem
from justright.benchmark.suite_problem import REST, problem_of
from justright.errors import DataError
from justright.runs.problem import OWN

HEBREW = SuiteProblem(
    name="hebrew",
    target="glyphs:per_class=8,scripts=hebrew",
    pool={"italic": "glyphs:per_class=6,scripts=old-italic", "digits": "glyphs:per_class=6,scripts=digits"},
)


def test_half_of_the_classes_are_old_and_half_of_their_images_labeled():
    problem = problem_of(HEBREW)
    assert len(problem.own_classes) == 11
    assert len(problem.own_rows) == 11 * 4
    assert len(problem.target) == 22 * 8 - 11 * 4
    assert {origin.dataset for origin in problem.pool.origins} == {OWN, "italic", "digits"}
    assert problem.n_target_classes == 22
    _, is_old = problem.truth.open_for_evaluation()
    assert is_old.sum() == 11 * 4


def test_the_same_description_gives_the_same_problem_and_another_seed_another_half():
    one, again, other = problem_of(HEBREW), problem_of(HEBREW), problem_of(replace(HEBREW, split_seed=1))
    assert one.pool.images.paths == again.pool.images.paths
    assert one.pool.images.paths != other.pool.images.paths


def test_caps_and_shares_hold():
    problem = problem_of(replace(HEBREW, classes=10, per_class=6, pool_per_class=2, old_share=0.2, labeled_share=0.25))
    assert problem.n_target_classes == 10
    assert len(problem.own_classes) == 2
    assert len(problem.own_rows) == 3
    assert len(problem.other_rows) == 2 * (9 + 10)


def test_classes_that_were_not_drawn_may_join_the_pool():
    problem = problem_of(replace(HEBREW, classes=10, other_classes_in_pool=True))
    of_rest = [origin.label for origin in problem.pool.origins if origin.dataset == REST]
    labels, _ = problem.truth.open_for_evaluation()
    assert len(of_rest) == 12
    assert not set(of_rest) & set(labels.tolist())


def test_without_old_classes_the_pool_is_all_there_is():
    problem = problem_of(replace(HEBREW, old_share=0.0))
    assert problem.own_classes == ()
    assert len(problem.target) == 22 * 8
    assert set(problem.target.labels.tolist()) == {-1}


def test_wrong_labels_are_as_many_as_asked_for_all_wrong_of_the_same_data_set_and_never_own():
    right, spoiled = problem_of(HEBREW), problem_of(replace(HEBREW, wrong_labels=0.25))
    assert right.pool.images.paths == spoiled.pool.images.paths
    differs = right.pool.images.labels != spoiled.pool.images.labels
    assert differs.sum() == round(0.25 * 54) + round(0.25 * 60)
    assert not differs[right.own_rows].any()
    images, origins = spoiled.pool.images, spoiled.pool.origins
    assert images.table["class_name"].to_pylist() == [images.classes[label] for label in images.labels.tolist()]
    assert images.table["dataset"].to_pylist() == [origins[label].dataset for label in images.labels.tolist()]
    assert right.pool.images.table["label"].to_pylist() != images.table["label"].to_pylist()


def test_a_place_in_a_folder_that_was_not_named_is_refused():
    with pytest.raises(DataError, match="was not named"):
        problem_of(replace(HEBREW, target="{data}/pets.zip"))


def test_uneven_classes_go_from_the_largest_to_the_smallest_size():
    problem = problem_of(replace(HEBREW, pool={}, uneven=(8, 2)))
    names = [
        *problem.pool.images.table["class_name"].to_pylist(),
        *problem.truth._images.table["class_name"].to_pylist(),
    ]
    found = sorted(Counter(names).values())
    assert (found[0], found[-1]) == (2, 8)
    assert found == sorted(np.geomspace(8, 2, num=22).round().astype(int).tolist())
