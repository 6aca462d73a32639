from __future__ import annotations

import sys
from types import ModuleType

import pytest

from justright.discovery.curve_writer import CurveWriter
from justright.errors import JustrightError


def test_without_tensorboard_the_message_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(JustrightError, match=r"justright\[tensorboard\]"):
        CurveWriter(tmp_path)


def test_every_number_of_a_record_becomes_a_point(monkeypatch, tmp_path):
    points = []

    class Writer:
        def __init__(self, folder):
            self.folder = folder

        def add_scalar(self, *point):
            points.append(point)

        def flush(self):
            pass

    module = ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Writer
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    CurveWriter(tmp_path).write({"epoch": 3, "loss": 1.5, "learning_rate": 0.1})
    assert points == [("loss", 1.5, 3), ("learning_rate", 0.1, 3)]
