from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from tests.report.fake_runs import fake_run

from justright.evaluation import Scores
from justright.report.compared_runs import SeedGroup, change, mean_and_spread


def group(values, half=0.0):
    return SeedGroup(tuple(fake_run(str(n), seed=n, accuracy=value, half=half) for n, value in enumerate(values)))


def test_interval_without_image_noise_is_welchs():
    a, b = [0.70, 0.74, 0.71, 0.75], [0.60, 0.66, 0.64]
    found = change(group(a), group(b), "all")
    expected = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert found.points == pytest.approx(100 * (np.mean(a) - np.mean(b)))
    assert (found.low, found.high) == pytest.approx((100 * expected.low, 100 * expected.high))
    assert found.verdict() == "better"


def test_one_seed_per_side_adds_a_caveat():
    found = change(group([0.8], half=0.03), group([0.6], half=0.04), "new")
    assert found.high - found.points == pytest.approx(5.0)
    assert found.verdict() == "better on these images; with one seed it may still be chance"
    assert change(group([0.6], half=0.03), group([0.8], half=0.04), "new").verdict().startswith("worse")


@pytest.mark.parametrize(("a", "b"), [([0.62], [0.60]), ([0.62, 0.60, 0.66], [0.60, 0.65, 0.59])])
def test_a_small_difference_is_called_noise(a, b):
    assert change(group(a, half=0.03), group(b, half=0.03), "all").verdict() == "within the noise"


def test_change_without_scores_is_none():
    assert change(group([None]), group([0.5]), "all") is None


def test_settings_are_those_of_the_run_and_of_its_selection(finished):
    settings = fake_run("a", run=finished).settings
    assert settings["method"] == "simgcd"
    assert settings["config.learning_rate"] == 0.1
    assert settings["selection.alpha"] == 5.0


def test_keys_ignore_the_seed_and_optionally_the_selection():
    one, again, other = fake_run("a", seed=0), fake_run("b", seed=1), fake_run("c", config={"rate": 2})
    none = fake_run("d", selector="none")
    assert one.key() == again.key()
    assert one.key() != other.key()
    assert one.key() != none.key()
    assert one.key(ignoring_selection=True) == none.key(ignoring_selection=True)
    rival = fake_run("e", pool_role="rival")
    assert one.key() != rival.key()
    assert one.key(ignoring_selection=True) == rival.key(ignoring_selection=True)


def test_command_line_is_not_a_setting():
    one, other = (
        fake_run("a", request={"target": "t", "command": f"justright discover --out {place}"}) for place in "ab"
    )
    assert one.settings == other.settings
    assert one.settings["request.target"] == "t"


def test_only_a_given_k_is_a_setting():
    estimated = [fake_run("a", n_target=n, k_source="mixture").key() for n in (3, 4)]
    given = [fake_run("a", n_target=n, k_source="given").key() for n in (3, 4)]
    assert estimated[0] == estimated[1]
    assert given[0] != given[1]


def test_a_group_has_mean_and_spread():
    group = SeedGroup((fake_run("a", accuracy=0.5), fake_run("b", accuracy=0.7)))
    assert mean_and_spread(group.values("all")) == f"60.0 ± {100 * 0.02**0.5:.1f}"
    assert mean_and_spread(SeedGroup(group.runs[:1]).values("all")) == "50.0"
    assert mean_and_spread(SeedGroup((fake_run("c", accuracy=None),)).values("all")) == ""
    assert mean_and_spread([0.5, math.nan]) == "-"
    assert group.name == "a and 1 more"
    assert group.image_variance("all") == pytest.approx((0.05 / 1.959964) ** 2, rel=1e-5)
    assert isinstance(group.runs[0].scores, Scores)
