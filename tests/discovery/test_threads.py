from __future__ import annotations

import pytest
import torch
from tests.discovery.tiny import final_bytes, records
from tests.forked_programs import Program
from threadpoolctl import threadpool_info

from justright.discovery.processes import torch_threads


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_resume_keeps_the_original_thread_count(tmp_path):
    ended = Program("-m", "tests.discovery.threaded", tmp_path).end()
    assert ended.code == 0, ended.err
    one, killed = tmp_path / "one", tmp_path / "killed"
    assert final_bytes(killed / "run") == final_bytes(one / "run")
    assert records(killed / "run") == records(one / "run")
    for file in ("model.safetensors", "model.json"):
        assert (killed / "model" / file).read_bytes() == (one / "model" / file).read_bytes()
    log = killed.with_suffix(".log").read_text()
    assert "started with OMP_NUM_THREADS=1 and now it is 2: continuing with 1" in log
    assert not one.with_suffix(".log").read_text()


@pytest.mark.parametrize(("n_threads", "expected"), [(3, 3), (None, 2)])
def test_torch_threads_sets_and_restores_thread_counts(n_threads, expected):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    blas = blas_threads()
    try:
        with torch_threads(n_threads):
            assert torch.get_num_threads() == expected
            assert blas_threads() == {expected}
        assert torch.get_num_threads() == 2
        assert blas_threads() == blas
    finally:
        torch.set_num_threads(before)
