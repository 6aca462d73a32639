from __future__ import annotations

from justright.utils.context import silent


def test_silent_yields_every_step_and_prints_nothing(capsys):
    assert list(silent(iter("abc"), 3, "letters")) == ["a", "b", "c"]
    assert capsys.readouterr() == ("", "")


def test_steps_are_taken_one_by_one():
    taken = []
    steps = silent((taken.append(n) for n in range(3)), 3, "steps")
    assert taken == []
    next(steps)
    assert taken == [0]
