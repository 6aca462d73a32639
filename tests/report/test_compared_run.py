from __future__ import annotations

import pytest
from tests.report.fake_runs import fake_run

from justright.evaluation import Scores
from justright.report.compared_run import Group


def test_settings_are_those_of_the_run_and_of_its_selection(finished):
    settings = fake_run("a", run=finished).settings
    assert settings["method"] == "simgcd"
    assert settings["config.learning_rate"] == 0.1
    assert settings["selection.alpha"] == 5.0


def test_repetitions_share_a_key_and_selections_share_a_shorter_one():
    one, again, other = fake_run("a", seed=0), fake_run("b", seed=1), fake_run("c", config={"rate": 2})
    none = fake_run("d", selector="none")
    assert one.key() == again.key()
    assert one.key() != other.key()
    assert one.key() != none.key()
    assert one.key(ignoring_selection=True) == none.key(ignoring_selection=True)
    rival = fake_run("e", pool_role="rival")
    assert one.key() != rival.key()
    assert one.key(ignoring_selection=True) == rival.key(ignoring_selection=True)


def test_what_was_typed_is_no_setting():
    one, other = (
        fake_run("a", asked={"target": "t", "command": f"justright discover --out {place}"}) for place in "ab"
    )
    assert one.settings == other.settings
    assert one.settings["asked.target"] == "t"


def test_an_estimated_k_is_no_setting_but_a_given_one_is():
    estimated = [fake_run("a", n_target=n, k_source="mixture").key() for n in (3, 4)]
    given = [fake_run("a", n_target=n, k_source="given").key() for n in (3, 4)]
    assert estimated[0] == estimated[1]
    assert given[0] != given[1]


def test_a_group_has_mean_and_spread():
    group = Group((fake_run("a", accuracy=0.5), fake_run("b", accuracy=0.7)))
    assert group.mean("all") == pytest.approx(0.6)
    assert group.spread("all") == pytest.approx(0.02**0.5)
    assert Group(group.runs[:1]).spread("all") is None
    assert group.name == "a and 1 more"
    assert group.image_variance("all") == pytest.approx((0.05 / 1.959964) ** 2, rel=1e-5)
    assert isinstance(group.runs[0].scores, Scores)
