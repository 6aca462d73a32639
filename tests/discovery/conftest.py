"""What tests of discovery share: a tiny split and a tiny backbone. Threads would only wait for each other."""

from __future__ import annotations

import pytest
import torch
from tests.discovery.tiny import backbone_of_noise, drawn_split

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


@pytest.fixture
def saved_often(monkeypatch):
    """A checkpoint after each step."""
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)
