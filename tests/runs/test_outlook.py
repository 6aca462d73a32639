from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from justright.data import glyph_set
from justright.features import speed
from justright.runs.outlook import Outlook, minutes, outlook
from justright.runs.parts import config_of
from justright.runs.spec import RunSpec

N_LABELED, TARGET = 400, glyph_set(30, ["hebrew"]).take(range(600))
SETTINGS = {"n_epochs": 30, "batch_size": 100, "views": 4}


def config(**changes):
    return config_of(RunSpec(settings=SETTINGS | changes))


def of(method, config):
    return Outlook.of(N_LABELED, len(TARGET), method, config, 0.1, 0.01)


def test_every_image_is_extracted_seen_plain_and_in_each_view_and_steps_fill_epochs():
    found = of("simgcd", config())
    assert (found.n_images, found.n_views, found.n_steps) == (1000, 6000, 300)
    assert found.seconds == pytest.approx(6000 * 0.1 + 30_000 * 0.01)
    fresh = of("simgcd", config(views="fresh"))
    assert fresh.n_views == 2000 + 2 * 30_000
    assert of("kmeans", config_of(RunSpec(method="kmeans"))).n_views == 2000


@pytest.fixture
def machine(monkeypatch):
    def take(image, step, name="efficientnet_lite2"):
        monkeypatch.setattr(speed, "try_out", lambda backbone, images: (image, step))
        backbone = SimpleNamespace(name=name, device=torch.device("cpu"))
        return outlook(N_LABELED, TARGET, "simgcd", config(), backbone)

    return take


def test_a_long_run_says_what_it_takes_and_what_would_make_it_cheaper(machine):
    said = machine(0.1, 0.05)
    assert "up to 35 min: 1,000 images, 6,000 views of them and 300 steps of training" in said
    assert "--epochs 10 (18 min), --set views=2 (32 min)" not in said, "an option that saves little is not offered"
    assert "--epochs 10 (18 min), --backbone efficientnet_lite0 (16 min)" in said
    assert "--set views=2 (7 min)" in machine(0.1, 0.001)
    assert "--backbone" not in machine(0.1, 0.05, name="efficientnet_lite0")


def test_of_a_quick_run_nothing_is_said(machine):
    assert machine(0.001, 0.001) == ""


def test_times_are_for_people():
    assert [minutes(seconds) for seconds in (150.0, 7000.0, 9000.0)] == ["2 min", "117 min", "2.5 h"]
