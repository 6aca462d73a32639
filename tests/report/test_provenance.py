from __future__ import annotations

from tests.report.html_checks import part, text_of

from justright.report.run_parts import flat_texts, reproduction, resolved, settings_part, timings


def test_settings_become_one_level():
    assert flat_texts({"a": {"b": {"c": 1}}, "d": [1, 2]}) == {"a.b.c": 1, "d": "1, 2"}


def test_all_settings_are_shown(finished):
    text = text_of(part("run", "settings", settings_part(finished.about)))
    for words in ("method simgcd", "selector beta", "source of K given", "backbone glyph_vit", "target photos"):
        assert words in text
    assert "config.learning_rate 0.1" in text


def test_unfinished_run_shows_its_spec():
    about = {
        "spec": {"method": "gcd", "seed": 3, "backbone": "x", "checkpoint": None},
        "request": {},
        "is_finished": False,
    }
    assert resolved(about)["method"] == "gcd"
    text = text_of(part("run", "settings", settings_part(about)))
    assert "method gcd" in text
    assert "backbone x" in text
    assert part("run", "settings", settings_part({}))


def test_reproduction_lists_command_versions_and_seed(finished):
    text = text_of(part("run", "reproduce", reproduction(finished.about)))
    for words in (
        finished.about["command"],
        "version of torch 2.13.0",
        "fingerprint of pool.content " + "a" * 32,
        "seed 0",
    ):
        assert words in text
    assert "has no record of its command" in part("run", "reproduce", reproduction({}))


def test_stage_seconds_sum_to_the_total(finished):
    text = text_of(part("run", "seconds", timings(finished.about)))
    assert "train 18.0 75" in text
    assert f"all {sum(finished.about['seconds'].values()):.1f} 100" in text
    assert "has no timings" in timings({"seconds": None}).reason
