from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from justright.data import glyph_set
from justright.features import speed
from justright.runs.costs import CostPlan, Rates, Work
from justright.runs.spec import RunSpec, config_of
from justright.runs.time_warning import BRIEF, THOROUGH, time_warning

CUT = SimpleNamespace(ends_in_norm=True)
N_LABELED, TARGET = 400, glyph_set(30, ["hebrew"]).take(range(600))
SETTINGS = {"n_epochs": 30, "batch_size": 100, "views": 4}


def spec(n_seeds=1, **changes):
    return RunSpec(settings=SETTINGS | changes, n_seeds=n_seeds)


def config(**changes):
    return config_of(spec(**changes))


def of(method, config):
    rates = Rates(extract=0.1, view=0.1, step=0.01)
    return CostPlan(
        Work(len(TARGET), N_LABELED),
        rates,
        method,
        config,
        SimpleNamespace(dim=8, cut=CUT),
    )


def test_every_image_is_extracted_seen_plain_and_in_each_view_and_steps_fill_epochs():
    found = of("simgcd", config())
    assert (found.work.n_images, found.n_stored, found.in_training) == (1000, 5000, (300, 30_000, 0))
    assert sum(found.seconds().values()) == pytest.approx(6000 * 0.1 + 30_000 * 0.01)
    fresh = of("simgcd", config(views="fresh"))
    assert (fresh.n_stored, fresh.in_training[2]) == (1000, 2 * 30_000)
    assert of("kmeans", config_of(RunSpec(method="kmeans"))).n_stored == 1000


@pytest.fixture
def machine(monkeypatch):
    def take(image, step, name="efficientnet_lite2", n_seeds=1):
        monkeypatch.setattr(speed, "try_out", lambda backbone, images, seconds: (image, step))
        backbone = SimpleNamespace(name=name, device=torch.device("cpu"), dim=8, cut=CUT)
        return time_warning(N_LABELED, TARGET, spec(n_seeds), backbone)

    return take


def test_a_long_run_says_what_it_takes_and_what_would_make_it_cheaper(machine):
    said = machine(0.1, 0.05)
    assert "up to 35 min: 1,000 images, 6,000 views of them and 300 steps of training" in said
    assert "--minutes 8 (18 min), --set views=2 (32 min)" not in said, "an option that saves little is not offered"
    assert "--minutes 8 (18 min), --backbone efficientnet_lite0 (16 min)" in said
    assert "--set views=2 (7.2 min)" in machine(0.1, 0.001)
    assert "--backbone" not in machine(0.1, 0.05, name="efficientnet_lite0")


def test_every_seed_trains_and_all_share_features_and_views(machine):
    said = machine(0.1, 0.05, n_seeds=3)
    assert "up to 1.4 h: 1,000 images, 6,000 views of them and 900 steps of training" in said, "10 and 3 x 25 min"
    assert "--minutes 25 (35 min)" in said, "a third of the time of all seeds together"


def test_a_k_that_is_given_sets_the_length(monkeypatch):
    monkeypatch.setattr(speed, "try_out", lambda backbone, images, seconds: (0.1, 0.05))
    backbone = SimpleNamespace(name="efficientnet_lite0", device=torch.device("cpu"), dim=8, cut=CUT)
    said = [time_warning(N_LABELED, TARGET, RunSpec(scale="small", n_target=n), backbone) for n in (20, 200)]
    assert "and 4,0" in said[1], "20 steps a category"
    assert said[0] != said[1]


def test_of_a_quick_run_nothing_is_said(machine):
    assert machine(0.001, 0.001) == ""


def test_a_run_that_is_quick_at_a_first_look_is_not_tried_for_long(monkeypatch):
    def tried(image):
        asked = []
        monkeypatch.setattr(speed, "try_out", lambda backbone, images, seconds: asked.append(seconds) or (image, 0.0))
        backbone = SimpleNamespace(name="efficientnet_lite0", device=torch.device("cpu"), dim=8, cut=CUT)
        time_warning(N_LABELED, TARGET, spec(), backbone)
        return asked

    assert tried(0.003) == [BRIEF], "18 seconds in all"
    assert tried(0.01) == [BRIEF, THOROUGH], "a minute, which may be more at a second look"
