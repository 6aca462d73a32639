"""timm beside a torchvision of the fitting build, of another build, and a broken one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

IMPORT = "from justright.features.guarded_timm import timm; "


def run(code: str, *first_on_the_path: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([*map(str, first_on_the_path), *filter(None, sys.path)])
    command = [sys.executable, "-W", "error", "-c", IMPORT + code]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}, check=False)


@pytest.fixture(scope="module")
def fresh():
    """A network first, and then all that is imported beside it: a process of its own takes seconds to start."""
    code = "import torch; print(timm.create_model('resnet10t', num_classes=0)(torch.zeros(1, 3, 64, 64)).shape[1])"
    return run(code + "; import torchvision.transforms.v2, timm.data")


def test_timm_and_the_transforms_of_torchvision_import_in_a_fresh_process_without_a_warning(fresh):
    assert fresh.returncode == 0, fresh.stderr


def test_a_network_of_timm_computes(fresh):
    assert fresh.stdout.strip() == "512"


def test_another_failure_of_torchvision_is_not_hidden(tmp_path):
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text("raise RuntimeError('of another kind')")
    assert "RuntimeError: of another kind" in run("", tmp_path).stderr
