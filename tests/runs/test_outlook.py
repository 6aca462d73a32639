from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from justright.data import glyph_set
from justright.features import speed
from justright.runs.costs import CostPlan, Rates, Work
from justright.runs.outlook import BRIEF, THOROUGH, outlook
from justright.runs.parts import config_of
from justright.runs.spec import RunSpec

CUT = SimpleNamespace(ends_in_norm=True)
N_LABELED, TARGET = 400, glyph_set(30, ["hebrew"]).take(range(600))
SETTINGS = {"n_epochs": 30, "batch_size": 100, "views": 4}


def config(**changes):
    return config_of(RunSpec(settings=SETTINGS | changes))


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
    def take(image, step, name="efficientnet_lite2"):
        monkeypatch.setattr(speed, "try_out", lambda backbone, images, seconds: (image, step))
        backbone = SimpleNamespace(name=name, device=torch.device("cpu"), dim=8, cut=CUT)
        return outlook(N_LABELED, TARGET, "simgcd", config(), backbone)

    return take


def test_a_long_run_says_what_it_takes_and_what_would_make_it_cheaper(machine):
    said = machine(0.1, 0.05)
    assert "up to 35 min: 1,000 images, 6,000 views of them and 300 steps of training" in said
    assert "--minutes 8 (18 min), --set views=2 (32 min)" not in said, "an option that saves little is not offered"
    assert "--minutes 8 (18 min), --backbone efficientnet_lite0 (16 min)" in said
    assert "--set views=2 (7.2 min)" in machine(0.1, 0.001)
    assert "--backbone" not in machine(0.1, 0.05, name="efficientnet_lite0")


def test_of_a_quick_run_nothing_is_said(machine):
    assert machine(0.001, 0.001) == ""


def test_a_run_that_is_quick_at_a_first_look_is_not_tried_for_long(monkeypatch):
    def tried(image):
        asked = []
        monkeypatch.setattr(speed, "try_out", lambda backbone, images, seconds: asked.append(seconds) or (image, 0.0))
        backbone = SimpleNamespace(name="efficientnet_lite0", device=torch.device("cpu"), dim=8, cut=CUT)
        outlook(N_LABELED, TARGET, "simgcd", config(), backbone)
        return asked

    assert tried(0.003) == [BRIEF], "18 seconds in all"
    assert tried(0.01) == [BRIEF, THOROUGH], "a minute, which may be more at a second look"
