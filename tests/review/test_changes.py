from __future__ import annotations

import numpy as np

from justright.review.state import Change, Moved, edit


def test_reversed_change_restores_the_state():
    group, names = np.array([0, 0, 1]), {0: "goose"}
    change = Change((Moved(np.array([0]), 0, 1),), (edit(names, 0, "duck"), edit(names, 1, "swan")))
    change.apply(group)
    assert (group.tolist(), names) == ([1, 0, 1], {0: "duck", 1: "swan"})
    change.reversed().apply(group)
    assert (group.tolist(), names) == ([0, 0, 1], {0: "goose"})


def test_change_applies_only_to_the_expected_state():
    group, names = np.array([0, 0, 1]), {0: "goose"}
    moved, named = Change((Moved(np.array([0, 1]), 0, 1),)), Change(edits=(edit(names, 0, "duck"),))
    assert moved.can_apply(group)
    assert named.can_apply(group)
    group[1], names[0] = 2, "swan"
    assert not moved.can_apply(group)
    assert not named.can_apply(group)


def test_groups_of_a_change_are_sources_and_destinations():
    change = Change((Moved(np.array([0]), 0, 5), Moved(np.array([1]), 0, 6)), (edit({}, 9, "name"),))
    assert change.groups == {0, 5, 6}
