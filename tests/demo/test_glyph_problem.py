from __future__ import annotations

import pytest

from justright.demo.glyph_problem import CLASSES_A_SET, LABELED_SETS, OWN, POOL_SCRIPTS, glyph_problem, with_labeled_set


def test_the_problem_has_old_and_new_characters_and_a_pool_of_many_scripts():
    problem = glyph_problem(per_class=12, pool_per_class=1)
    assert {origin.dataset for origin in problem.pool.origins} == {OWN, *POOL_SCRIPTS}
    assert set(problem.target.labels.tolist()) == {-1}
    labels, is_old = problem.truth.open_for_evaluation()
    assert 0.2 < is_old.mean() < 0.5
    assert len(set(labels.tolist())) == problem.n_target_classes
    old = {problem.pool.origins[label].label for label in problem.own_classes}
    assert old == set(labels[is_old].tolist())


@pytest.mark.parametrize("name", LABELED_SETS)
def test_labeled_sets_have_one_size_and_the_whole_target_is_new_to_them(name):
    problem = glyph_problem(per_class=2, pool_per_class=1)
    other = with_labeled_set(problem, LABELED_SETS[name])
    assert len(other.pool.origins) == CLASSES_A_SET
    assert other.own_classes == ()
    _, is_old = other.truth.open_for_evaluation()
    assert not is_old.any()
