from __future__ import annotations

from justright.selection.verdict import COLUMNS, OWN, Diagnosis, DrawScores


def outcomes_of(**by_setting) -> dict[str, list[DrawScores]]:
    return {name: [DrawScores(value, value, 0.5) for value in values] for name, values in by_setting.items()}


def test_the_whole_pool_wins_unless_another_is_clearly_ahead():
    everything = [0.5] * 8
    luck = outcomes_of(own=[0.4] * 8, none=everything, bins=[0.9] * 6 + [0.4] * 2)
    found = Diagnosis.of(luck, 10, 5)
    assert found.rows[0].name == "bins"
    assert found.winner == "none"
    assert "no other is clearly ahead, bins in 6 of 8 draws" in found.verdict
    clear = outcomes_of(own=[0.4] * 8, none=everything, bins=[0.6] * 7 + [0.4], beta=[0.55] * 8)
    assert Diagnosis.of(clear, 10, 5).winner == "bins"
    harmful = outcomes_of(own=[0.6] * 8, none=everything, bins=[0.55] * 8)
    assert Diagnosis.of(harmful, 10, 5).winner == OWN


def test_a_setting_that_selects_nothing_is_named_and_cannot_win():
    outcomes = {OWN: [DrawScores(0.5, 0.5, 0.0)] * 4, "mute": [None] * 4}
    found = Diagnosis.of(outcomes, 10, 5)
    assert found.unanswered == ("mute",)
    assert found.verdict == "Take own (no pool): no other setting had a result."
    assert "mute" in found.how()


def test_rows_have_a_cell_per_column():
    found = Diagnosis.of(outcomes_of(own=[0.4, 0.5], none=[0.6, 0.6]), 10, 5)
    best, own = found.cells()
    assert {len(best), len(own)} == {len(COLUMNS)}
    assert best[:3] == ("none", "60.0", "60.0")
    assert best[5] == "2 of 2"
    assert own[3:6] == ("", "", "")
    assert "5 of your 10 labeled classes" in found.how()
