"""Rates are measured by running each stage on a few images."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from justright.data import glyph_set, open_images
from justright.data.batches import BalancedBatches
from justright.features.backbone import random_backbone
from justright.runs import measured_rates
from justright.runs.costs import CostPlan, Rates, Work
from justright.runs.measured_rates import measure, rough_rates
from justright.runs.spec import RunSpec


def plan_of(method, backbone, **settings):
    spec = RunSpec(method=method, scale="small", settings=settings)
    return CostPlan(Work(100, n_categories=10), spec, backbone)


def test_every_rate_is_measured_on_the_images(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    monkeypatch.setattr(measured_rates, "N_ROWS", 100)
    monkeypatch.setattr(measured_rates, "N_IMAGES", 8)
    backbone = random_backbone("glyph_vit")
    rates = measure(plan_of("mugcd", backbone, heads_first=5), glyph_set(2, ["digits"]))
    numbers = {name: value for name, value in asdict(rates).items() if name != "about"}
    assert all(value > 0 for value in numbers.values())
    assert "glyph_vit at 64 pixels on cpu" in rates.about
    assert "8 own images" in rates.about
    assert not list(tmp_path.rglob("*.npy")), "nothing is left in the cache"


def test_kmeans_has_no_steps_to_measure(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    monkeypatch.setattr(measured_rates, "N_ROWS", 100)
    monkeypatch.setattr(measured_rates, "N_IMAGES", 8)
    rates = measure(plan_of("kmeans", random_backbone("glyph_vit")), None)
    assert (rates.step, rates.extract > 0) == (0, True)
    assert "8 drawn images" in rates.about


@pytest.mark.parametrize("method", ["simgcd", "gcd", "xcon", "mugcd", "cms", "selex"])
def test_steps_are_timed_with_the_batch_size_of_the_run(method, tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    sizes, rows = [], BalancedBatches.rows

    def counted(self, epoch, n_steps=None, first=0):
        sizes.append(self.batch_size)
        return rows(self, epoch, n_steps, first)

    monkeypatch.setattr(BalancedBatches, "rows", counted)
    plan = plan_of(method, random_backbone("glyph_vit"), batch_size=40)
    assert measured_rates._step_rate(plan, glyph_set(1, ["digits"]), tmp_path / "views", extract=1e-6) > 0
    assert max(sizes) == 40, "larger than the number of images"
    sizes.clear()
    measured_rates._step_rate(plan, glyph_set(1, ["digits"]), tmp_path / "views", extract=1.0)
    assert max(sizes) == measured_rates.BATCH, "a slow network gets smaller batches"


def test_rough_rates_skip_unreadable_images(make_tree):
    folder = make_tree({"cats": 3})
    (folder / "cats" / "0.png").write_bytes(b"no picture")
    rates = rough_rates(random_backbone("glyph_vit"), open_images(folder))
    assert 0 < rates.extract == rates.view == rates.step
    for file in (folder / "cats").iterdir():
        file.write_bytes(b"no picture")
    assert rough_rates(random_backbone("glyph_vit"), open_images(folder)) == Rates()
