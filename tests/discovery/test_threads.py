from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.discovery.tiny import final_bytes, records
from threadpoolctl import threadpool_info

from justright.discovery.threads import computing_with

ROOT = Path(__file__).parents[2]


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_a_training_that_is_called_again_with_other_threads_goes_on_with_those_it_began_with(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    command = [sys.executable, "-m", "tests.discovery.threaded", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    one, killed = tmp_path / "one", tmp_path / "killed"
    assert final_bytes(killed / "run") == final_bytes(one / "run")
    assert records(killed / "run") == records(one / "run")
    for file in ("model.safetensors", "model.json"):
        assert (killed / "model" / file).read_bytes() == (one / "model" / file).read_bytes()
    said = killed.with_suffix(".log").read_text()
    assert "begun with OMP_NUM_THREADS=1 and now it is 2: going on with 1" in said
    assert not one.with_suffix(".log").read_text()


@pytest.mark.parametrize(("asked", "found"), [(3, 3), (None, 2)])
def test_torch_and_blas_compute_with_as_many_threads_as_asked_and_then_as_before(asked, found):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    blas = blas_threads()
    try:
        with computing_with(asked):
            assert torch.get_num_threads() == found
            assert blas_threads() == {found}
        assert torch.get_num_threads() == 2
        assert blas_threads() == blas
    finally:
        torch.set_num_threads(before)
