"""Planned steps are those that run, and a run that is long or trains too briefly starts with a message."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from tests.runs.drawn_problem import drawn_problem

from justright.data import glyph_set
from justright.discovery import configs, gcd
from justright.features.backbone import load_backbone
from justright.runs import measured_rates
from justright.runs.costs import CostPlan, Rates, Work
from justright.runs.measured_rates import with_rates
from justright.runs.run import Run
from justright.runs.spec import RunSpec
from justright.utils.context import use
from justright.utils.errors import DegenerateError

WORK = Work(600, n_labeled=400, n_classes=20, n_seen=1000, n_categories=40)
IMAGES = glyph_set(3, ["digits"])
SLOW = Rates(extract=0.1, view=0.1, step=0.05)
SETTINGS = {"n_epochs": 30, "batch_size": 100, "views": 4}
SPEC = RunSpec(settings=SETTINGS, n_target=40)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def problem():
    return drawn_problem(6, 3)


@pytest.fixture
def short(monkeypatch):
    """Trainings of a tenth of their usual length."""
    for owner, name, value in (
        (configs, "MIN_STEPS", 4),
        (configs, "STEPS_PER_CATEGORY", 1),
        (configs, "MIN_PASSES", 0.3),
        (gcd, "MIN_STEPS_ON_ACTIVATIONS", 4),
    ):
        monkeypatch.setattr(owner, name, value)


def steps_that_run(run):
    """Run it and count the steps of each training, by the name of its progress bar."""
    counted = Counter()

    def track(steps, total, what):
        for step in steps:
            counted[what] += what.startswith("training")
            yield step

    with use(progress=track):
        run.all()
    return {what: n for what, n in counted.items() if n}


@pytest.mark.parametrize(
    ("method", "settings", "n_seeds"),
    [
        ("kmeans", {}, 1),
        ("simgcd", {}, 1),
        ("simgcd", {"n_epochs": 2, "heads_first": 60}, 2),
        ("gcd", {}, 1),
        ("gcd", {"n_epochs": 2}, 3),
        ("xcon", {}, 1),
        ("mugcd", {"n_epochs": 2, "heads_first": 10, "stage1": {"n_epochs": 1}}, 1),
        ("mugcd", {}, 2),
        ("cms", {}, 1),
        ("selex", {"n_epochs": 2}, 1),
    ],
)
def test_planned_steps_are_those_that_run(method, settings, n_seeds, problem, short, tmp_path):
    trained = {} if method == "kmeans" else {"batch_size": 16, "views": 2, "hidden_dim": 8, "out_dim": 4}
    given = {"held_out_share": 0.2} | trained | settings
    spec = RunSpec(method=method, scale="small", settings=given, backbone="glyph_vit", n_target=22, n_seeds=n_seeds)
    run = Run(problem, spec, tmp_path / "run", load_backbone("glyph_vit"))
    planned = run.costs.steps()
    expected = Counter()
    for part, n in planned.items():
        expected[f"training {'the heads of ' * (part == 'heads')}{method}"] += n_seeds * n
    assert steps_that_run(run) == dict(expected)


def test_failed_measurement_does_not_stop_the_run(problem, short, tmp_path, monkeypatch):
    def fail(*given):
        raise DegenerateError("nothing to measure")

    monkeypatch.setattr(measured_rates, "rough_rates", fail)
    messages: list[str] = []
    spec = RunSpec(method="kmeans", scale="small", backbone="glyph_vit", n_target=22)
    run = Run(problem, spec, tmp_path / "run", load_backbone("glyph_vit"), is_interactive=True)
    with use(message=messages.append):
        assert run.all().about["is_finished"]
    assert messages[0].startswith("The duration is unknown: ")


@pytest.fixture
def machine(monkeypatch):
    """The message before a run on a machine with these rates."""

    def message(rates=SLOW, name="efficientnet_lite2", n_seeds=1, work=WORK, **settings):
        monkeypatch.setattr(measured_rates, "rough_rates", lambda *given: rates)
        monkeypatch.setattr(measured_rates, "measure", lambda *given: rates)
        backbone = SimpleNamespace(name=name, device=torch.device("cpu"), dim=8, cut=SimpleNamespace(ends_in_norm=True))
        spec = replace(SPEC, settings=SETTINGS | settings, n_seeds=n_seeds)
        plan = CostPlan(replace(work, n_seeds=n_seeds), spec, backbone)
        return with_rates(plan, IMAGES).message()

    return message


def test_message_of_a_long_run_names_cheaper_options(machine):
    text = machine()
    assert "up to 34 min: 1,000 images, 300 steps of training; less" in text
    assert "Cheaper: --minutes 8, --set views=2, --method kmeans, --backbone efficientnet_lite0" in text
    assert "--backbone" not in machine(name="efficientnet_lite0")


def test_seeds_share_features_and_views(machine):
    text = machine(n_seeds=3)
    assert "up to 1.4 h: 1,000 images, 300 steps of training, for each of 3 seeds" in text
    assert "--minutes 25" in text, "a third of the time of all seeds together"


def test_message_marks_a_guessed_k(machine):
    text = machine(work=replace(WORK, is_k_known=False))
    assert "300 steps of training; 40 categories are a guess until K is estimated" in text


def test_short_run_has_no_message_and_only_rough_rates(machine, monkeypatch):
    monkeypatch.setattr(Rates, "about", "")
    assert machine(replace(SLOW, extract=1e-3, view=1e-3, step=1e-3)) == ""


def test_message_warns_of_too_few_minutes(machine):
    """300 steps of 100 images take 25 minutes."""
    text = machine(minutes=2.0)
    assert "--minutes 2 leaves time for about 8% of the steps" in text
    assert "use --minutes 5 or more, or --method kmeans" in text
    text = machine(minutes=6.0, n_seeds=3)
    assert "--minutes 6 leaves time for about 8% of the steps" in text
    assert "--minutes 15 or more, or" in text
    assert "leaves time" not in machine(minutes=12.0)
    quick = replace(SLOW, extract=1e-3, view=1e-3, step=1e-3)
    assert "leaves time for about 15% of the steps" in machine(quick, minutes=0.075), "of a quick run too"
