"""Fixtures of the tests of discovery: a tiny split and a tiny backbone. One thread is faster than several here."""

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
    """One folder for all view banks: tests with the same images share a bank."""
    return tmp_path_factory.mktemp("banks")


@pytest.fixture(scope="session")
def uninterrupted(split, backbone, bank, tmp_path_factory):
    """Uninterrupted trainings, each done once for all tests that compare with it or resume from a copy."""
    finished: dict[str, FinishedTraining] = {}

    def training(name, *, guided=False, copy_to=None, **more):
        key = repr((name, guided, sorted(more.items())))
        if key not in finished:
            folder = tmp_path_factory.mktemp("uninterrupted")
            method = learned(name, guided_split() if guided else split, backbone, bank, folder, **more)
            finished[key] = FinishedTraining(folder, method)
        result = finished[key]
        if copy_to is None:
            return result
        shutil.copytree(result.folder, copy_to, dirs_exist_ok=True)
        return FinishedTraining(copy_to, result.method)

    return training


@pytest.fixture
def saved_often(monkeypatch):
    """A checkpoint after each step."""
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)
