"""What a run costs follows from its numbers."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from justright.features.backbone import random_backbone
from justright.runs.costs import CHECKED_INIT, IMAGE_BYTES, CostPlan, Rates, time_text
from justright.runs.spec import RunSpec
from justright.runs.work import Work
from justright.utils.errors import JustrightError

RATES = Rates(
    extract=0.02, view=0.03, plain=0.01, step=0.04, stage1=0.05, heads=0.006, tuned=0.007, tree=1e-8,
    mixture=1e-7, cluster=1e-6, memory=1e8, about="a test",
)  # fmt: skip
WORK = Work(n_target=9_000, n_labeled=1_000, n_classes=50, n_known=50, n_categories=60)


@pytest.fixture(scope="module")
def backbone():
    return random_backbone("glyph_vit")


@pytest.fixture
def plan(backbone, tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))

    def make(work=WORK, method="simgcd", **settings):
        return CostPlan(work, RATES, RunSpec(method=method, settings=settings), backbone)

    return make


def stage(plan, name):
    return next(each for each in plan.stages() if each.name == name)


def test_time_is_work_times_rate(plan):
    costs = plan(views=4, n_epochs=3, batch_size=100)
    after = 10_000 * 0.007  # the features of all images
    assert stage(costs, "extract").seconds == pytest.approx(10_000 * 0.02)
    assert stage(costs, "bank").seconds == pytest.approx(10_000 * (0.01 + 4 * 0.03))
    assert stage(costs, "train").seconds == pytest.approx(3 * 10_000 * 0.04 + after)
    assert stage(costs, "estimate").seconds == pytest.approx(6_000**2 * 1e-8 + 10_000 * 60 * 1e-7)
    assert stage(costs, "check").seconds == pytest.approx(CHECKED_INIT * 10_000 * 60 * 1e-6)
    some = plan(n_epochs=3, n_steps=7, batch_size=100)
    assert stage(some, "train").seconds == pytest.approx(3 * 7 * 100 * 0.04 + after)


def test_steps_are_full_batches_of_the_images_that_training_draws(plan):
    """Guides and held-out images do not make an epoch longer, and what does not fill a batch is left out."""
    work = replace(WORK, n_unused=101, n_guides=800)
    assert plan(work, n_epochs=3, batch_size=100).steps() == {"": 3 * 90}
    assert plan(work, n_epochs=3, batch_size=100_000).steps() == {"": 3}
    guided = stage(plan(work, n_epochs=1, n_steps=10, batch_size=100, guide_share=0.25), "train").seconds
    assert guided == pytest.approx(10 * 125 * 0.04 + 10_000 * 0.007)


def test_heads_that_learn_alone_have_steps_and_a_rate_of_their_own(plan):
    costs = plan(n_epochs=3, n_steps=7, batch_size=100, heads_first=120, views=4)
    assert costs.steps() == {"heads": 150, "": 21}, "whole steps in each of fifty epochs"
    assert costs.steps_text() == "150 steps of the heads alone and 21 steps of training"
    heads = 150 * 100 * 0.006 + 4 * 10_000 * 0.007  # steps, and the features of all views
    assert stage(costs, "train").seconds == pytest.approx(heads + 21 * 100 * 0.04 + 10_000 * 0.007)


def test_every_training_of_mugcd_and_every_seed_is_counted(plan):
    costs = plan(replace(WORK, n_seeds=3), "mugcd", n_epochs=2, n_steps=5, batch_size=100)
    assert costs.steps() == {"stage1": 10, "": 10}
    assert costs.steps_text().endswith(", for each of 3 seeds")
    one = 10 * 100 * 0.05 + 10 * 100 * 0.04 + 10_000 * 0.007
    assert stage(costs, "train").seconds == pytest.approx(3 * one)


def test_minutes_end_each_training_and_tell_which_share_of_it_there_is_time_for(plan):
    costs = plan(minutes=2.0, n_epochs=10, n_steps=30, batch_size=100, steady_share=0.6)
    whole = 300 * 100 * 0.04 + 10 * 0.6 * 2048 * 0.007  # steps, and whether categories still change
    assert stage(costs, "train").seconds == pytest.approx(120 + 10_000 * 0.007)
    assert costs.trained_share == pytest.approx(120 / whole)
    assert costs.advice()[0].startswith("--minutes 2 leaves time for about 9% of the steps.")
    assert plan(n_epochs=10).trained_share == 1
    assert not plan(n_epochs=10).too_short()


def test_a_k_that_is_given_is_checked_for_few_images_only(plan):
    many = replace(WORK, n_target=90_000)
    assert stage(plan(many), "estimate").seconds == 0
    assert stage(plan(replace(many, is_k_known=False)), "estimate").seconds > 0


def test_fresh_views_cost_at_every_step_and_store_nothing(plan):
    fresh, stored = plan(views="fresh", n_epochs=2), plan(views=2, n_epochs=2)
    assert stage(fresh, "train").seconds > stage(stored, "train").seconds
    assert stage(fresh, "bank").disk < stage(stored, "bank").disk


def test_disk_is_what_a_run_says_it_writes(plan):
    costs = plan()
    assert costs.total().disk == sum(each.n_bytes for each in costs.disk.files())


def test_memory_grows_with_images_and_not_with_views(plan):
    ten = plan(replace(WORK, n_target=99_000))
    grown = stage(ten, "extract").memory - stage(plan(), "extract").memory
    assert grown == 90_000 * IMAGE_BYTES
    assert stage(plan(views=8), "bank").memory == stage(plan(views=2), "bank").memory


def test_processes_share_the_training_and_the_first_one_does_all_else(plan):
    one, four = plan(), plan(replace(WORK, n_devices=4))
    assert stage(four, "train").seconds == pytest.approx(stage(one, "train").seconds / 4)
    for name in ("extract", "estimate", "bank", "check"):
        assert stage(four, name) == stage(one, name)


def test_a_method_without_training_has_neither_steps_nor_their_views(plan):
    costs = plan(method="kmeans", n_init=2)
    assert costs.steps() == {}
    assert costs.steps_text() == ""
    assert stage(costs, "train").seconds == pytest.approx(10_000 * 0.007 + 2 * 10_000 * 60 * 1e-6)
    assert stage(costs, "check").seconds == 0
    assert costs.advice()


def test_the_largest_items_are_named_with_an_option_that_makes_them_smaller(plan):
    longest, largest = plan(views=4, n_epochs=200).advice()
    assert longest.startswith("train takes longest, ")
    assert "--epochs" in longest
    assert largest.startswith("bank takes ")
    assert "--set views=2" in largest
    assert "bank takes longest" in plan(views=8, n_epochs=1).advice()[0]


def test_the_settings_and_the_size_of_the_sample_are_those_of_the_estimate():
    from justright.discovery import checkpoints, heads_first, plateau
    from justright.estimation.combined import CombinedCounter
    from justright.estimation.spread import SpreadCounter
    from justright.runs import costs, disk, frozen_check

    assert (SpreadCounter().max_images, CombinedCounter().n_axes) == (costs.TREE_IMAGES, costs.AXES)
    assert (heads_first.MOST_IMAGES, heads_first.N_FRESH) == (costs.HEADS_IMAGES, costs.HEADS_VIEWS)
    assert (frozen_check.MOST_IMAGES, frozen_check.N_INIT) == (costs.CHECKED_IMAGES, costs.CHECKED_INIT)
    assert (plateau.MOST_IMAGES, checkpoints.N_KEPT) == (disk.PLATEAU_IMAGES, disk.CHECKPOINTS)


def test_rates_come_back_from_json_and_anything_else_is_refused(tmp_path):
    file, rates = tmp_path / "rates.json", asdict(RATES)
    for right in (rates, {"rates": rates, "stages": []}):
        file.write_text(json.dumps(right))
        assert Rates.read(file) == RATES
    wrong = [None, [], {}, {"rates": []}, {"rates": 3}, rates | {"extract": "fast"}, rates | {"view": -1.0}]
    for text in (b"{", b"\xff", *(json.dumps(each).encode() for each in wrong)):
        file.write_bytes(text)
        with pytest.raises(JustrightError, match="holds no rates"):
            Rates.read(file)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.5, "0.5 s"), (90.0, "1.5 min"), (7200.0, "2 h"), (2e5, "2.3 days"), (1e11, "3,169 years")]
)
def test_times_are_told_in_units_of_their_size(seconds, text):
    assert time_text(seconds) == text
