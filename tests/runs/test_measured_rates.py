"""Rates are measured by running each stage."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from justright.data import glyph_set, open_images
from justright.data.batches import BalancedBatches
from justright.features.backbone import random_backbone
from justright.runs import measured_rates
from justright.runs.costs import CostPlan, Rates
from justright.runs.measured_rates import drawn_photos, measure, rough_rates
from justright.runs.spec import RunSpec
from justright.runs.work import Work


def plan_of(method, backbone, **settings):
    spec = RunSpec(method=method, scale="small", settings=settings)
    return CostPlan(Work(100, n_categories=10), spec, backbone)


def test_every_rate_is_measured_on_the_images(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    monkeypatch.setattr(measured_rates, "N_ROWS", 100)
    monkeypatch.setattr(measured_rates, "N_IMAGES", 8)
    backbone = random_backbone("glyph_vit")
    rates = measure(plan_of("mugcd", backbone, heads_first=5), glyph_set(2, ["digits"]))
    numbers = {name: value for name, value in asdict(rates).items() if name not in ("about", "plain")}
    assert all(value > 0 for value in numbers.values())
    assert rates.plain == 0, "extraction stores the plain views of a ViT"
    assert "glyph_vit at 64 pixels on cpu" in rates.about
    assert "8 own images" in rates.about
    assert not list(tmp_path.rglob("*.npy")), "nothing is left in the cache"


def test_drawn_photos_are_ordinary_jpegs(tmp_path):
    photos = drawn_photos(tmp_path, 2)
    assert photos.image(1).size == (500, 375)
    assert 20_000 < (tmp_path / "drawn" / "1.jpg").stat().st_size < 300_000


def test_kmeans_has_no_steps_to_measure(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    backbone = random_backbone("glyph_vit")
    found = measured_rates._training_rates(plan_of("kmeans", backbone), glyph_set(1, ["digits"]), tmp_path, 0.001)
    assert list(found) == ["tuned"]
    assert found["tuned"] > 0


@pytest.mark.parametrize(
    ("method", "settings", "expected"),
    [
        ("simgcd", {"heads_first": 5}, {"tuned", "heads", "step"}),
        ("simgcd", {}, {"tuned", "step"}),
        ("xcon", {}, {"tuned", "step"}),
        ("selex", {}, {"tuned", "step"}),
        ("mugcd", {}, {"tuned", "stage1", "step"}),
    ],
)
def test_steps_are_timed_with_the_batch_size_of_the_run(method, settings, expected, tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path))
    seen, backbone = [], random_backbone("glyph_vit")
    rows = BalancedBatches.rows

    def counted(self, epoch, n_steps=None, first=0):
        seen.append(self.batch_size)
        return rows(self, epoch, n_steps, first)

    monkeypatch.setattr(BalancedBatches, "rows", counted)
    plan = plan_of(method, backbone, batch_size=40, **settings)
    found = measured_rates._training_rates(plan, glyph_set(1, ["digits"]), tmp_path, 1e-6)
    assert set(found) == expected
    assert max(seen) == 40, "larger than the number of images"
    seen.clear()
    measured_rates._training_rates(plan, glyph_set(1, ["digits"]), tmp_path, 1.0)
    assert max(seen) == measured_rates.BATCH, "a slow network gets smaller batches"


def test_rough_rates_skip_unreadable_images(make_tree):
    folder = make_tree({"cats": 3})
    (folder / "cats" / "0.png").write_bytes(b"no picture")
    rates = rough_rates(random_backbone("glyph_vit"), open_images(folder))
    assert 0 < rates.heads < rates.extract == rates.view == rates.step
    for file in (folder / "cats").iterdir():
        file.write_bytes(b"no picture")
    assert rough_rates(random_backbone("glyph_vit"), open_images(folder)) == Rates()


@pytest.mark.parametrize(
    ("few", "all_of_them", "expected"), [(1.0, 5.0, 0.5), (2.0, 1.0, 0.1)], ids=["difference", "noise hides it"]
)
def test_time_per_image_is_never_zero(monkeypatch, tmp_path, few, all_of_them, expected):
    times = iter([few, all_of_them])
    monkeypatch.setattr(measured_rates, "_seconds", lambda call: next(times))
    assert measured_rates._by_image(lambda some, place: None, glyph_set(1, ["digits"]), tmp_path) == expected
