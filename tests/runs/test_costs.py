"""Time, memory and disk of a run are computed from its counts."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from justright.features.backbone import random_backbone
from justright.runs.costs import COUNT_RESTARTS, FORWARD_SHARE, IMAGE_BYTES, CostPlan, Rates, Work, time_text
from justright.runs.frozen_check import N_INIT
from justright.runs.spec import RunSpec
from justright.utils.errors import JustrightError

RATES = Rates(extract=0.02, view=0.03, step=0.06, cluster=1e-6, memory=1e8, about="a test")
FEATURE = 0.06 * FORWARD_SHARE  # seconds to compute one with the tuned network
RESTART = 10_000 * 60 * 1e-6  # seconds of one restart of k-means
WORK = Work(n_target=9_000, n_labeled=1_000, n_classes=50, n_seen=10_000, n_categories=60)


@pytest.fixture(scope="module")
def backbone():
    return random_backbone("glyph_vit")


@pytest.fixture
def plan(backbone, tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))

    def make(work=WORK, method="simgcd", **settings):
        return CostPlan(work, RunSpec(method=method, settings=settings), backbone, rates=RATES)

    return make


def test_time_is_work_times_rate(plan):
    seconds = plan(views=4, n_epochs=3, batch_size=100).seconds()
    after = 10_000 * FEATURE + N_INIT * RESTART  # features of all images, and k-means as a comparison
    assert seconds["extract"] == pytest.approx(10_000 * 0.02)
    assert seconds["views"] == pytest.approx(10_000 * 4 * 0.03)
    assert seconds["train"] == pytest.approx(3 * 10_000 * 0.06 + after)
    assert seconds["estimate"] == pytest.approx(COUNT_RESTARTS * RESTART)
    some = plan(n_epochs=3, n_steps=7, batch_size=100).seconds()
    assert some["train"] == pytest.approx(3 * 7 * 100 * 0.06 + after)


def test_steps_are_full_batches(plan):
    """Guides and held-out images do not make an epoch longer, and an incomplete batch is dropped."""
    work = replace(WORK, n_seen=9_099, n_guides=800)
    assert plan(work, n_epochs=3, batch_size=100).steps() == {"": 3 * 90}
    assert plan(work, n_epochs=3, batch_size=100_000).steps() == {"": 3}
    guided = plan(work, n_epochs=1, n_steps=10, batch_size=100, guide_share=0.25).seconds()["train"]
    assert guided == pytest.approx(10 * 125 * 0.06 + 10_000 * FEATURE + N_INIT * RESTART)


def test_training_of_the_heads_has_its_own_steps_and_rate(plan):
    costs = plan(n_epochs=3, n_steps=7, batch_size=100, heads_first=120, views=4)
    assert costs.steps() == {"heads": 150, "": 21}, "whole steps in each of fifty epochs"
    assert costs.steps_text() == "150 steps of the heads alone and 21 steps of training"
    heads = 150 * 100 * 0.006 + 4 * 10_000 * FEATURE  # steps, and the features of all views
    assert costs.training_seconds(costs.trainings[0]) == pytest.approx(heads)
    assert costs.training_seconds(costs.trainings[1]) == pytest.approx(21 * 100 * 0.06)


def test_all_trainings_and_seeds_are_counted(plan):
    costs = plan(replace(WORK, n_seeds=3), "mugcd", n_epochs=2, n_steps=5, batch_size=100)
    assert costs.steps() == {"stage1": 10, "": 10}
    assert costs.steps_text().endswith(", for each of 3 seeds")
    one = 2 * 10 * 100 * 0.06 + 10_000 * FEATURE + N_INIT * RESTART
    assert costs.seconds()["train"] == pytest.approx(3 * one)


def test_minutes_limit_each_training(plan):
    costs = plan(minutes=2.0, n_epochs=10, n_steps=30, batch_size=100, steady_share=0.6)
    assert costs.seconds()["train"] == pytest.approx(120 + 10_000 * FEATURE + N_INIT * RESTART)
    assert costs.trained_share == pytest.approx(120 / (300 * 100 * 0.06))
    assert "--minutes 2 leaves time for about 7% of the steps." in costs.advice()
    assert plan(n_epochs=10).trained_share == 1
    assert not plan(n_epochs=10).too_short()


def test_given_k_is_checked_for_few_images_only(plan):
    many = replace(WORK, n_target=90_000)
    assert plan(many).seconds()["estimate"] == 0
    assert plan(replace(many, is_k_known=False)).seconds()["estimate"] > 0


def test_fresh_views_take_time_and_no_disk(plan):
    fresh, stored = plan(views="fresh", n_epochs=2), plan(views=2, n_epochs=2)
    assert fresh.seconds()["train"] > stored.seconds()["train"]
    assert fresh.disk()["views"] < stored.disk()["views"]


def test_disk_is_the_sum_of_all_files(plan):
    costs = plan()
    assert sum(costs.disk().values()) == sum(each.n_bytes for each in costs.files())


def test_memory_grows_with_images_and_not_with_views(plan):
    n_bytes = IMAGE_BYTES + 4 * plan().backbone.dim
    many = replace(WORK, n_target=90_000)  # too many to check K
    grown = plan(replace(many, n_target=190_000)).memory() - plan(many).memory()
    assert grown == 100_000 * n_bytes
    assert plan(views=8).memory() == plan(views=2).memory()


def test_processes_share_steps_and_features(plan):
    """`features_of` splits the rows between processes; k-means runs in the first one."""
    for method, settings in (("simgcd", {}), ("simgcd", {"heads_first": 120, "n_epochs": 3}), ("selex", {})):
        one, four = (plan(replace(WORK, n_devices=n), method, **settings) for n in (1, 4))
        for training in one.trainings:
            assert four.training_seconds(training) == pytest.approx(one.training_seconds(training) / 4)
        assert four.seconds() | {"train": 0} == one.seconds() | {"train": 0}
    (training,) = plan(method="selex", n_epochs=2, n_steps=5, batch_size=100).trainings
    seconds = plan(method="selex", n_epochs=2, n_steps=5, batch_size=100).training_seconds(training)
    assert seconds == pytest.approx(2 * 5 * 100 * 0.06 + 2 * 10_000 * FEATURE), "steps, and features in each epoch"


def test_kmeans_has_no_steps(plan):
    costs = plan(method="kmeans", n_init=2)
    assert costs.steps() == {}
    assert costs.steps_text() == "no training"
    assert costs.seconds()["train"] == pytest.approx(2 * RESTART)
    assert costs.advice()


def test_advice_names_options_that_make_the_run_cheaper(plan):
    advice = plan(replace(WORK, is_k_known=False), views=8, n_epochs=1).advice()
    for option in ("--minutes ", "--set views=2", "--k, if you know", "--method kmeans"):
        assert option in advice
    assert plan(method="kmeans").advice().startswith("Cheaper: fewer images")


def test_rates_are_read_from_json_and_validated(tmp_path):
    file, rates = tmp_path / "rates.json", asdict(RATES)
    file.write_text(json.dumps({"rates": rates, "stages": []}))
    assert Rates.read(file) == RATES
    changed = [rates | {"extract": "fast"}, rates | {"view": -1.0}, rates | {"tree": 1.0}]
    wrong = [None, [], {}, {"rates": []}, {"rates": 3}, *({"rates": each} for each in changed)]
    for text in (b"{", b"\xff", *(json.dumps(each).encode() for each in wrong)):
        file.write_bytes(text)
        with pytest.raises(JustrightError, match="holds no rates"):
            Rates.read(file)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.5, "0.5 s"), (90.0, "1.5 min"), (7200.0, "2 h"), (2e5, "2.3 days"), (1e11, "3,169 years")]
)
def test_time_text_picks_the_unit(seconds, text):
    assert time_text(seconds) == text
