"""timm with a torchvision of the same build, of another build, and a broken one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.forked_programs import Program

FRESH = """
from justright.features.guarded_timm import timm
import torch
print(timm.create_model("resnet10t", num_classes=0)(torch.zeros(1, 3, 64, 64)).shape[1])
import torchvision.transforms.v2, timm.data
"""


@pytest.fixture(scope="module")
def fresh():
    """One process for several tests, because it takes seconds to start."""
    path = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-W", "error", "-c", FRESH]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}, check=False)


def test_timm_and_torchvision_import_without_warnings(fresh):
    assert fresh.returncode == 0, fresh.stderr


def test_network_of_timm_computes(fresh):
    assert fresh.stdout.strip() == "512"


BROKEN = """
import sys
for name in [name for name in sys.modules if name.partition(".")[0] in ("torchvision", "timm")]:
    del sys.modules[name]
del sys.modules["justright.features.guarded_timm"]
sys.path.insert(0, sys.argv[1])
import justright.features.guarded_timm
"""


def test_other_failures_of_torchvision_are_raised(tmp_path):
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text("raise RuntimeError('of another kind')")
    ended = Program("-c", BROKEN, tmp_path).end()
    assert ended.code == 1
    assert "RuntimeError: of another kind" in ended.err
