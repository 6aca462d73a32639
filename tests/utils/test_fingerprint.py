"""Changed settings are found and named."""

from __future__ import annotations

from justright.utils.settings import differences, differences_text, is_made_with

BEFORE = {"seed": 0, "config": {"rate": 0.1, "sizes": [1, 2]}}


def test_equal_settings_have_no_differences():
    assert differences(BEFORE, {"seed": 0, "config": {"sizes": (1, 2), "rate": 0.1}}) == {}


def test_differences_are_named_by_their_path():
    changes = differences(BEFORE, {"seed": 1, "config": {"rate": 0.1}, "scale": "small"})
    assert changes == {"config.sizes": ([1, 2], None), "scale": (None, "small"), "seed": (0, 1)}
    assert differences_text(changes).splitlines()[2] == "  seed: 0 before, 1 now"


def test_saved_work_is_reused_only_if_its_settings_are_the_same():
    assert is_made_with({"made_with": BEFORE, "result": 3}, BEFORE)
    for saved in (None, {}, {"made_with": None}, {"made_with": [1]}, {"made_with": BEFORE | {"seed": 1}}):
        assert not is_made_with(saved, BEFORE)
