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
def test_counts_equal_those_of_training(problem, role):
    labels = problem.pool.images.labels
    work = Work.of(problem, replace(SPEC, pool_role=role))
    data = TrainingData.of(problem.split(role), None, held_out_share=0.2)
    assert work.n_images == len(data.images)
    assert (work.n_seen, work.n_guides) == (len(data.seen), len(data.guides))
    assert work.n_classes == len(data.known) + len(np.unique(labels[data.guides]))


def test_labeled_target_image_counts_once(problem):
    more = ImageSet.concat([problem.target, problem.pool.images.take(problem.own_rows[::3]).without_labels()])
    given, copies = replace(problem, target=more, truth=None).with_given_labels()
    assert copies.n_given == len(problem.own_rows[::3])
    data = TrainingData.of(given.split(), None, held_out_share=0.2)
    work = Work.of(given, SPEC)
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
