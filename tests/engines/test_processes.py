"""Processes of this machine: those that are lost again and again, and those whose parent is."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from justright.engines import ENGINES
from justright.utils.errors import JustrightError


def test_a_worker_that_dies_every_time_is_reported():
    with ENGINES["processes"](1) as engine, pytest.raises(JustrightError, match="a worker process ended") as error:
        list(engine(os._exit, [1]))
    assert "4 times" in error.value.problem
    assert "fewer workers" in error.value.advice


def test_work_that_cannot_be_sent_is_refused_with_another_engine_to_take():
    with ENGINES["processes"](1) as engine, pytest.raises(JustrightError, match="cannot be sent") as error:
        list(engine(lambda item: item, [1]))
    assert error.value.advice == "engine local"


KILLED = """
import time
from justright.engines import ENGINES
with ENGINES["processes"](1) as engine:
    print(*engine(eval, ["__import__('os').getpid()"]), flush=True)
    time.sleep(600)
"""


def test_workers_and_their_files_go_when_the_parent_is_killed(tmp_path):
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", KILLED]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        worker = int(process.stdout.readline())
        assert list(tmp_path.iterdir()) != []
        process.kill()
    end = time.monotonic() + 60
    while list(tmp_path.iterdir()) or os.path.exists(f"/proc/{worker}/exe"):
        assert time.monotonic() < end, "the worker or its folder is still there"
        time.sleep(0.05)
