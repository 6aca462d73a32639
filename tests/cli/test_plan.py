"""`justright plan`, and its output in docs/research/scale-details.md."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from tests.cli.conftest import invoke

from justright.features import automatic
from justright.runs.costs import CostPlan

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "research" / "scale-details.md").read_text(encoding="utf-8")
RATES = ROOT / "docs" / "results" / "rates.json"


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))


def planned(*words):
    return invoke(["plan", "--rates", RATES, "--backbone", "glyph_vit", *words]).stdout


def test_sources_are_counted(split):
    result = json.loads(
        planned("--target", str(split / "split" / "target.parquet"), "--labeled", str(split / "italic"), "--json")
    )
    assert result["work"]["n_target"] > 100
    assert result["work"]["n_labeled"] == 3 * result["work"]["n_classes"] > 0


def test_text_output_has_a_table_and_cheaper_options():
    message = planned("--target", "1_000_000", "--labeled", "1000", "--classes", "10", "--set", "views=4")
    stages = ("extract", "estimate", "views", "train")
    for word in (*stages, "of memory", "steps of training", "1,000,000 images", "--set views=2"):
        assert word in message
    assert "Rates: " in message


def test_disk_and_time_grow_linearly():
    few, many = (json.loads(planned("--target", n, "--json"))["stages"] for n in ("10000", "10000000"))
    for stage, larger in zip(few, many, strict=True):
        if stage["name"] in ("extract", "views"):
            assert larger["disk"] == 1000 * stage["disk"]
            assert larger["seconds"] == pytest.approx(1000 * stage["seconds"])


def test_set_overrides_the_option_of_the_same_name():
    many, few, both = (
        json.loads(planned("--target", "10000", "--json", *words))["stages"]
        for words in (["--epochs", "90"], ["--epochs", "3"], ["--epochs", "90", "--set", "n_epochs=3"])
    )
    assert both == few != many


def test_table_in_the_docs_is_the_output_of_its_command():
    (command,) = re.findall(r"^justright (plan .*--table)$", PAGE, re.M)
    done = invoke(shlex.split(command.replace("docs/", f"{ROOT}/docs/")))
    assert done.stdout.strip() in PAGE
    assert json.loads(RATES.read_text(encoding="utf-8"))["rates"]["about"] in PAGE.replace("\n", " ")


@pytest.mark.parametrize("text", ["", "[]", "{}", "\x00", '{"rates": 3}'])
def test_file_without_rates_raises(tmp_path, text):
    file = tmp_path / "rates.json"
    file.write_text(text)
    done = invoke(["plan", "--target", "10", "--backbone", "glyph_vit", "--rates", str(file)], 1)
    assert "rates.json holds no rates" in done.output


def test_number_of_images_may_have_commas():
    assert "12,000 images, 600 labeled" in planned("--target", "12,000", "--labeled", "600")
    done = invoke(["plan", "--target", "10k"], 1)
    assert "no such file or folder: 10k" in done.output
    assert "a number such as 10000" in done.output


def test_no_images_raise():
    done = invoke(["plan", "--target", "0"], 1)
    assert "0 images in the target" in done.output


def test_default_backbone_is_that_of_discover(monkeypatch):
    chosen = automatic.Choice("glyph_vit", "its checkpoint is here")
    monkeypatch.setattr(automatic, "choose_backbone", lambda device, fetch: chosen)
    done = invoke(["plan", "--target", "10", "--rates", str(RATES)])
    assert "Network: glyph_vit (its checkpoint is here)." in done.stderr


def test_plan_and_discover_estimate_the_same_steps(split, tmp_path, monkeypatch):
    steps = []

    def keep_steps(plan, is_begun=False):
        steps.append(plan.steps())
        return ""

    labeled, target = (str(split / "split" / f"{part}.parquet") for part in ("labeled", "target"))
    options = [
        "--labeled",
        labeled,
        "--target",
        target,
        "--backbone",
        "glyph_vit",
        "--k",
        "22",
        "--epochs",
        "1",
        "--set",
        "heads_first=7",
        "--seeds",
        "2",
    ]
    options += ["--held-out", "0.3", "--set", "batch_size=16", "--set", "views=2", "--device", "cpu"]
    monkeypatch.setattr(CostPlan, "message", keep_steps)
    invoke(["discover", *options, "--out", str(tmp_path / "run"), "--no-report"])
    result = json.loads(planned(*options, "--json"))
    assert result["steps"] == steps[0]
    assert set(result["steps"]) == {"heads", ""}


def test_several_processes_share_only_the_training():
    def seconds(*words):
        stages = json.loads(planned("--target", "10000", "--json", *words))["stages"]
        return {stage["name"]: stage["seconds"] for stage in stages}

    one, four = seconds(), seconds("--devices", "4")
    assert four["train"] == pytest.approx(one["train"] / 4, rel=0.05), "all but k-means"
    assert {name for name in one if one[name] != four[name]} == {"train"}
