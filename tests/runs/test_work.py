"""The counts of a run equal those of its training data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.runs.drawn_problem import drawn_problem

from justright.data import ImageSet
from justright.discovery.training_data import TrainingData
from justright.runs.costs import Work
from justright.runs.spec import RunSpec

SPEC = RunSpec(scale="small", settings={"held_out_share": 0.2}, n_target=22)


@pytest.fixture(scope="module")
def problem():
    return drawn_problem(8, 4)


@pytest.mark.parametrize("role", ["guide", "rival"])
@pytest.mark.parametrize("is_weighed", [False, True])
def test_counts_equal_those_of_training(problem, role, is_weighed):
    labels = problem.pool.images.labels
    weight = (labels % 3 > 0).astype(float) if is_weighed else None
    work = Work.of(problem, replace(SPEC, pool_role=role), weight=weight)
    data = TrainingData.of(problem.split(role), weight, held_out_share=0.2)
    assert work.n_images == len(data.images)
    assert (work.n_seen, work.n_guides) == (len(data.seen), len(data.guides))
    assert work.n_classes == len(data.known) + len(np.unique(labels[data.guides]))


@pytest.mark.parametrize("is_weighed", [False, True])
def test_labeled_target_image_counts_once(problem, is_weighed):
    labels = problem.pool.images.labels
    more = ImageSet.concat([problem.target, problem.pool.images.take(problem.own_rows[::3]).without_labels()])
    given, copies = replace(problem, target=more, truth=None).with_given_labels()
    assert copies.n_given == len(problem.own_rows[::3])
    weight = (labels % 3 > 0).astype(float) if is_weighed else None
    data = TrainingData.of(given.split(), weight, held_out_share=0.2)
    work = Work.of(given, SPEC, weight=weight)
    assert (work.n_images, work.n_seen) == (len(data.images), len(data.seen))


def test_rival_classes_are_categories(problem):
    n_others = len(problem.pool.origins) - len(problem.own_classes)
    assert Work.of(problem, SPEC).n_categories == 22
    assert Work.of(problem, replace(SPEC, pool_role="rival")).n_categories == 22 + n_others


def test_unknown_k_is_guessed(problem):
    work = Work.of(problem, replace(SPEC, n_target=None))
    assert (work.n_categories, work.is_k_known) == (2 * len(problem.own_classes), False)
    assert Work.of_sizes(replace(SPEC, n_target=None), 3000, [5, 5], []).n_categories == 100
    assert Work.of_sizes(replace(SPEC, n_target=None), 10, [], []).n_categories == 2
