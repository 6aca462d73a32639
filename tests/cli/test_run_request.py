from __future__ import annotations

from justright.cli.run_request import chosen_scale, read_settings


def test_settings_are_read_as_json_or_text():
    read = read_settings(("views=fresh", "learning-rate=0.5", "n_out=null", 'stage1={"n_epochs": 3}'))
    assert read == {"views": "fresh", "learning_rate": 0.5, "n_out": None, "stage1": {"n_epochs": 3}}


def test_the_scale_is_small_on_a_cpu_unless_asked_for():
    assert chosen_scale("auto", "cpu") == "small"
    assert chosen_scale("auto", "cuda") == "paper"
    assert chosen_scale("paper", "cpu") == "paper"
