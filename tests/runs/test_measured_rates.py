"""Rates are measured by doing the work."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from justright.data import glyph_set
from justright.discovery.methods import METHODS
from justright.features.backbone import random_backbone
from justright.runs import measured_rates
from justright.runs.measured_rates import drawn_photos, measure


def test_every_rate_of_a_method_is_measured_on_own_images(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    monkeypatch.setattr(measured_rates, "N_ROWS", 100)
    monkeypatch.setattr(measured_rates, "N_IMAGES", 8)
    images, config = glyph_set(2, ["digits"]), METHODS["simgcd"].config_class().small()
    rates = measure(random_backbone("glyph_vit"), "simgcd", config, images)
    numbers = {name: value for name, value in asdict(rates).items() if name != "about"}
    assert all(value > 0 for value in numbers.values())
    assert "glyph_vit at 64 pixels on cpu" in rates.about
    assert "8 own images" in rates.about
    assert not list(tmp_path.rglob("*.npy")), "nothing is left among what later runs use"


def test_drawn_photos_are_ordinary_jpegs(tmp_path):
    photos = drawn_photos(tmp_path, 2)
    assert photos.image(1).size == (500, 375)
    assert 20_000 < (tmp_path / "drawn" / "1.jpg").stat().st_size < 300_000


def test_a_method_without_training_has_no_steps_to_measure(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    config = METHODS["kmeans"].config_class()
    step, predict = measured_rates._training(
        random_backbone("glyph_vit"), "kmeans", config, glyph_set(1, ["digits"]), tmp_path
    )
    assert step == 0
    assert predict == pytest.approx(abs(predict))


def test_what_is_timed_is_a_step_that_tunes_and_not_one_of_heads_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    seen, simgcd = [], METHODS["simgcd"]

    def made(n_categories, backbone, config, **more):
        seen.append(config.heads_first)
        return simgcd(n_categories, backbone, config, **more)

    monkeypatch.setattr(measured_rates, "METHODS", {"simgcd": made})
    made.trainings, config = simgcd.trainings, simgcd.config_class().small()
    assert config.fitted(100, 5, ends_in_norm=False).heads_first > 0
    step, _ = measured_rates._training(
        random_backbone("glyph_vit"), "simgcd", config, glyph_set(1, ["digits"]), tmp_path
    )
    assert step > 0
    assert seen == [0]


def test_noise_never_makes_an_image_cost_nothing():
    assert measured_rates._by_image(5.0, 1.0, n=10, n_few=2) == 0.5
    assert measured_rates._by_image(1.0, 2.0, n=10, n_few=2) == 0.1
    assert measured_rates._by_image(1.0, 0.5, n=2, n_few=2) == 0.5
