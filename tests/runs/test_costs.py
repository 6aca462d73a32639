"""Time, memory and disk of a run are computed from its counts, and its steps are those that run."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from justright.features.backbone import random_backbone
from justright.runs.costs import IMAGE_BYTES, CostPlan, Rates, time_text
from justright.runs.frozen_check import N_INIT
from justright.runs.spec import RunSpec
from justright.runs.work import Work
from justright.utils.errors import JustrightError

RATES = Rates(
    extract=0.02, view=0.03, plain=0.01, step=0.04, stage1=0.05, heads=0.006, tuned=0.007, tree=1e-8,
    mixture=1e-7, cluster=1e-6, memory=1e8, about="a test",
)  # fmt: skip
WORK = Work(n_target=9_000, n_labeled=1_000, n_known=50, n_categories=60)


@pytest.fixture(scope="module")
def backbone():
    return random_backbone("glyph_vit")


@pytest.fixture
def plan(backbone, tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))

    def make(work=WORK, method="simgcd", **settings):
        return CostPlan(work, RunSpec(method=method, settings=settings), backbone, rates=RATES)

    return make


def stage(plan, name):
    return next(stage for stage in plan.stages() if stage.name == name)


def test_time_is_work_times_rate(plan):
    costs = plan(views=4, n_epochs=3, batch_size=100)
    after = 10_000 * 0.007  # the features of all images
    assert stage(costs, "extract").seconds == pytest.approx(10_000 * 0.02)
    assert stage(costs, "bank").seconds == pytest.approx(10_000 * (0.01 + 4 * 0.03))
    assert stage(costs, "train").seconds == pytest.approx(3 * 10_000 * 0.04 + after)
    assert stage(costs, "estimate").seconds == pytest.approx(6_000**2 * 1e-8 + 10_000 * 60 * 1e-7)
    assert stage(costs, "check").seconds == pytest.approx(N_INIT * 10_000 * 60 * 1e-6)
    some = plan(n_epochs=3, n_steps=7, batch_size=100)
    assert stage(some, "train").seconds == pytest.approx(3 * 7 * 100 * 0.04 + after)


def test_steps_are_full_batches(plan):
    """Guides and held-out images do not make an epoch longer, and an incomplete batch is dropped."""
    work = replace(WORK, n_unused=101, n_guides=800)
    assert plan(work, n_epochs=3, batch_size=100).steps() == {"": 3 * 90}
    assert plan(work, n_epochs=3, batch_size=100_000).steps() == {"": 3}
    guided = stage(plan(work, n_epochs=1, n_steps=10, batch_size=100, guide_share=0.25), "train").seconds
    assert guided == pytest.approx(10 * 125 * 0.04 + 10_000 * 0.007)


def test_training_of_the_heads_has_its_own_steps_and_rate(plan):
    costs = plan(n_epochs=3, n_steps=7, batch_size=100, heads_first=120, views=4)
    assert costs.steps() == {"heads": 150, "": 21}, "whole steps in each of fifty epochs"
    assert costs.steps_text() == "150 steps of the heads alone and 21 steps of training"
    heads = 150 * 100 * 0.006 + 4 * 10_000 * 0.007  # steps, and the features of all views
    assert stage(costs, "train").seconds == pytest.approx(heads + 21 * 100 * 0.04 + 10_000 * 0.007)


def test_all_trainings_and_seeds_are_counted(plan):
    costs = plan(replace(WORK, n_seeds=3), "mugcd", n_epochs=2, n_steps=5, batch_size=100)
    assert costs.steps() == {"stage1": 10, "": 10}
    assert costs.steps_text().endswith(", for each of 3 seeds")
    one = 10 * 100 * 0.05 + 10 * 100 * 0.04 + 10_000 * 0.007
    assert stage(costs, "train").seconds == pytest.approx(3 * one)


def test_minutes_limit_each_training(plan):
    costs = plan(minutes=2.0, n_epochs=10, n_steps=30, batch_size=100, steady_share=0.6)
    whole = 300 * 100 * 0.04 + 10 * 0.6 * 2048 * 0.007  # steps, and features to see whether categories still change
    assert stage(costs, "train").seconds == pytest.approx(120 + 10_000 * 0.007)
    assert costs.trained_share == pytest.approx(120 / whole)
    assert "--minutes 2 leaves time for about 9% of the steps." in costs.advice()
    assert plan(n_epochs=10).trained_share == 1
    assert not plan(n_epochs=10).too_short()


def test_given_k_is_checked_for_few_images_only(plan):
    many = replace(WORK, n_target=90_000)
    assert stage(plan(many), "estimate").seconds == 0
    assert stage(plan(replace(many, is_k_known=False)), "estimate").seconds > 0


def test_fresh_views_take_time_and_no_disk(plan):
    fresh, stored = plan(views="fresh", n_epochs=2), plan(views=2, n_epochs=2)
    assert stage(fresh, "train").seconds > stage(stored, "train").seconds
    assert stage(fresh, "bank").disk < stage(stored, "bank").disk


def test_disk_is_the_sum_of_all_files(plan):
    costs = plan()
    assert costs.total().disk == sum(each.n_bytes for each in costs.files())


def test_memory_grows_with_images_and_not_with_views(plan):
    ten = plan(replace(WORK, n_target=99_000))
    grown = stage(ten, "extract").memory - stage(plan(), "extract").memory
    assert grown == 90_000 * IMAGE_BYTES
    assert stage(plan(views=8), "bank").memory == stage(plan(views=2), "bank").memory


def test_processes_share_steps_and_features(plan):
    """`features_of` splits the rows between processes; k-means and the hierarchy of SelEx run in each of them."""
    for method, settings in (("simgcd", {}), ("simgcd", {"heads_first": 120, "n_epochs": 3})):
        one, four = (plan(replace(WORK, n_devices=n), method, **settings) for n in (1, 4))
        assert stage(four, "train").seconds == pytest.approx(stage(one, "train").seconds / 4)
        for name in ("extract", "estimate", "bank", "check"):
            assert stage(four, name) == stage(one, name)
    (training,) = plan(replace(WORK, n_devices=4), "selex", n_epochs=2, n_steps=5, batch_size=100).trainings
    seconds = plan(replace(WORK, n_devices=4), "selex", n_epochs=2, n_steps=5, batch_size=100).training_seconds(
        training
    )
    shared = 2 * 5 * 100 * 0.04 + 2 * 10_000 * 0.007
    assert seconds == pytest.approx(shared / 4 + 2 * 10_000 * 60 * 1e-6)


def test_kmeans_has_no_steps(plan):
    costs = plan(method="kmeans", n_init=2)
    assert costs.steps() == {}
    assert costs.steps_text() == ""
    assert stage(costs, "train").seconds == pytest.approx(10_000 * 0.007 + 2 * 10_000 * 60 * 1e-6)
    assert stage(costs, "check").seconds == 0
    assert costs.advice()


def test_advice_names_options_that_make_the_run_cheaper(plan):
    advice = plan(replace(WORK, is_k_known=False), views=8, n_epochs=1).advice()
    for option in ("--minutes ", "--set views=2", "--k, if you know", "--method kmeans"):
        assert option in advice
    assert plan(method="kmeans").advice().startswith("Cheaper: fewer images")


def test_rates_are_read_from_json_and_validated(tmp_path):
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
def test_time_text_picks_the_unit(seconds, text):
    assert time_text(seconds) == text
