"""Workers: one core each, few tasks ahead, and the threads of torch restored."""

from __future__ import annotations

import pytest
import torch
from tests.features.tiny_extraction import run

from justright.features.workers import decode_and_compute, on_one_core_each, one_core_a_thread


def test_threads_of_torch_are_restored(drawn, tmp_path):
    torch.set_num_threads(3)
    run(drawn, tmp_path / "t", n_workers=2)
    assert torch.get_num_threads() == 3
    torch.set_num_threads(1)


def test_threads_of_torch_are_restored_after_an_error():
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), one_core_a_thread():
        _ = 1 / 0
    assert torch.get_num_threads() == before


def test_every_worker_computes_on_one_core():
    assert set(on_one_core_each(lambda _: torch.get_num_threads(), range(8), 2)) == {1}


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_tasks_are_decoded_then_computed_in_order(device):
    results = decode_and_compute(float, str, range(5), torch.device(device), 2)
    assert list(results) == ["0.0", "1.0", "2.0", "3.0", "4.0"]


@pytest.mark.parametrize("n_workers", [0, 2])
def test_few_tasks_are_submitted_ahead(n_workers):
    drawn = []
    results = on_one_core_each(str, (drawn.append(task) or task for task in range(100)), n_workers)
    next(results)
    assert len(drawn) <= n_workers + 2
    results.close()
