"""What a run costs follows from its numbers."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from justright.discovery.methods import METHODS
from justright.errors import JustrightError
from justright.features.backbone import random_backbone
from justright.runs.costs import IMAGE_BYTES, CostPlan, Rates, Work, time_text

RATES = Rates(0.01, 0.02, 0.03, 0.04, 1e-9, 1e-8, 1e-7, 0.05, 1e8, "a test")
WORK = Work(n_target=9_000, n_labeled=1_000, n_classes=50, n_categories=20)


@pytest.fixture(scope="module")
def backbone():
    return random_backbone("glyph_vit")


@pytest.fixture
def plan(backbone, tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))

    def make(work=WORK, method="simgcd", **settings):
        config = METHODS[method].config_class().with_settings(settings)
        return CostPlan(work, RATES, method, config, backbone)

    return make


def stage(plan, name):
    return next(each for each in plan.stages() if each.name == name)


def test_time_is_work_times_rate(plan):
    costs = plan(views=4, n_epochs=3, batch_size=100)
    assert stage(costs, "audit").seconds == pytest.approx(10_000 * 0.01)
    assert stage(costs, "extract").seconds == pytest.approx(10_000 * 0.02)
    assert stage(costs, "bank").seconds == pytest.approx(10_000 * (1 + 4) * 0.03)
    assert stage(costs, "train").seconds == pytest.approx(3 * 10_000 * 0.04)
    assert stage(costs, "select").seconds == pytest.approx(9_000 * 50 * costs.backbone.dim * 1e-9)
    assert stage(costs, "estimate").seconds == pytest.approx(6_000**2 * 1e-8 + 10_000 * 20 * 1e-7)
    assert stage(plan(n_epochs=3, n_steps=7, batch_size=100), "train").seconds == pytest.approx(3 * 7 * 100 * 0.04)


def test_fresh_views_cost_at_every_step_and_store_nothing(plan):
    fresh, stored = plan(views="fresh", n_epochs=2), plan(views=2, n_epochs=2)
    assert stage(fresh, "train").seconds > stage(stored, "train").seconds
    assert stage(fresh, "bank").disk < stage(stored, "bank").disk


def test_disk_is_what_a_run_says_it_writes(plan):
    costs = plan()
    written = sum(each.n_bytes for each in costs.disk.files())
    of_features = 9_000 * costs.backbone.dim * 4
    assert sum(each.disk for each in costs.stages()) == written + of_features


def test_memory_grows_with_images_and_not_with_views(plan):
    ten = plan(replace(WORK, n_target=99_000))
    grown = stage(ten, "extract").memory - stage(plan(), "extract").memory
    assert grown == 90_000 * IMAGE_BYTES
    assert stage(plan(views=8), "bank").memory == stage(plan(views=2), "bank").memory


def test_devices_share_what_can_be_shared(plan):
    one, four = plan(), plan(replace(WORK, n_devices=4))
    for name in ("audit", "extract", "bank", "select", "train"):
        assert stage(four, name).seconds == pytest.approx(stage(one, name).seconds / 4)
    assert stage(four, "estimate") == stage(one, "estimate")


def test_a_method_without_training_has_neither_steps_nor_their_views(plan):
    assert stage(plan(method="kmeans"), "train").seconds == 0
    assert plan(method="kmeans").advice()


def test_the_largest_items_are_named_with_an_option_that_makes_them_smaller(plan):
    longest, largest = plan(views=4, n_epochs=200).advice()
    assert longest.startswith("train takes longest, ")
    assert "--epochs" in longest
    assert largest.startswith("bank takes ")
    assert "--set views=2" in largest
    assert "bank takes longest" in plan(views=8, n_epochs=1).advice()[0]


def test_the_settings_and_the_size_of_the_sample_are_those_of_the_estimate():
    from justright.estimation.combined import CombinedCounter
    from justright.estimation.spread import SpreadCounter
    from justright.runs import costs

    assert (SpreadCounter().max_images, CombinedCounter().n_axes) == (costs.TREE_IMAGES, costs.AXES)


def test_rates_come_back_from_json_and_anything_else_is_refused(tmp_path):
    file, rates = tmp_path / "rates.json", asdict(RATES)
    for right in (rates, {"rates": rates, "stages": []}):
        file.write_text(json.dumps(right))
        assert Rates.read(file) == RATES
    wrong = [None, [], {}, {"rates": []}, {"rates": 3}, rates | {"audit": "fast"}, rates | {"view": -1.0}]
    for text in (b"{", b"\xff", *(json.dumps(each).encode() for each in wrong)):
        file.write_bytes(text)
        with pytest.raises(JustrightError, match="holds no rates"):
            Rates.read(file)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.5, "0.5 s"), (90.0, "1.5 min"), (7200.0, "2 h"), (2e5, "2.3 days"), (1e11, "3,169 years")]
)
def test_times_are_told_in_units_of_their_size(seconds, text):
    assert time_text(seconds) == text
