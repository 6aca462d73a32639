from __future__ import annotations

import pytest
import torch
from threadpoolctl import threadpool_info

from justright.discovery.processes import torch_threads


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize(("n_threads", "expected"), [(3, 3), (None, 2)])
def test_torch_threads_sets_and_restores_thread_counts(n_threads, expected, tmp_path):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    blas = blas_threads()
    try:
        with torch_threads(n_threads, tmp_path):
            assert torch.get_num_threads() == expected
            assert blas_threads() == {expected}
        assert torch.get_num_threads() == 2
        assert blas_threads() == blas
    finally:
        torch.set_num_threads(before)
