"""What tests of discovery share: a tiny split and a tiny backbone. Threads would only wait for each other."""

from __future__ import annotations

import shutil

import pytest
import torch
from tests.discovery.tiny import FinishedTraining, backbone_of_noise, drawn_split, guided_split, learned

from justright.discovery import loop

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def split():
    return drawn_split()


@pytest.fixture(scope="session")
def backbone():
    return backbone_of_noise()


@pytest.fixture(scope="session")
def bank(tmp_path_factory):
    """One place for all view banks: the same images give the same bank."""
    return tmp_path_factory.mktemp("banks")


@pytest.fixture(scope="session")
def uninterrupted(split, backbone, bank, tmp_path_factory):
    """Trainings that nothing disturbs, each done once for all tests that compare with it or go on from a copy."""
    known: dict[str, FinishedTraining] = {}

    def find(name, *, guided=False, copy_to=None, **more):
        key = repr((name, guided, sorted(more.items())))
        if key not in known:
            folder = tmp_path_factory.mktemp("left-alone")
            method = learned(name, guided_split() if guided else split, backbone, bank, folder, **more)
            known[key] = FinishedTraining(folder, method)
        found = known[key]
        if copy_to is None:
            return found
        shutil.copytree(found.folder, copy_to, dirs_exist_ok=True)
        return FinishedTraining(copy_to, found.method)

    return find


@pytest.fixture
def saved_often(monkeypatch):
    """A checkpoint after each step."""
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)
