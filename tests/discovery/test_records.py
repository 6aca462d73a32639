from __future__ import annotations

import json
import sys
from types import ModuleType

import pytest

from justright.discovery.checkpoints import EpochRecords
from justright.utils.errors import JustrightError


def test_error_names_the_extra_for_tensorboard(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(JustrightError, match=r"justright\[tensorboard\]"):
        EpochRecords(tmp_path, tensorboard=True)


def test_tensorboard_gets_every_number_of_a_record(monkeypatch, tmp_path):
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
    EpochRecords(tmp_path, tensorboard=True).write([{"epoch": 3, "loss": 1.5, "learning_rate": 0.1}])
    assert sorted(points) == [("learning_rate", 0.1, 3), ("loss", 1.5, 3)]


def test_resume_rewrites_repeated_and_damaged_records(tmp_path):
    records = EpochRecords(tmp_path / "run")
    records.write([])
    assert not records.path.exists()
    every = [{"epoch": epoch, "loss": 1.0} for epoch in range(3)]
    records.write(every)
    with records.path.open("a") as file:
        file.write('{"epoch": 1, "lo')
    records.path.write_text(records.path.read_text().replace("1.0", "1.5", 1))
    records.write(every[:2])
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"epoch": 0, "loss": 1.0}, {"epoch": 1, "loss": 1.0}]
    records.write([])
    assert records.path.read_text() == ""


def test_without_a_folder_nothing_is_written():
    records = EpochRecords(None, tensorboard=True)
    records.write([{"epoch": 0}])
    assert records.path is None
