"""Workers: results in order, little begun ahead, and torch left as it was."""

from __future__ import annotations

import time

import pytest
import torch
from tests.features.tiny_extraction import run

from justright.features.workers import in_order, n_cores, one_core_a_thread


def test_torch_gets_its_threads_back(drawn, tmp_path):
    torch.set_num_threads(3)
    run(drawn, tmp_path / "t", n_workers=2)
    assert torch.get_num_threads() == 3
    torch.set_num_threads(1)


def test_torch_gets_its_threads_back_after_an_error():
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), one_core_a_thread():
        _ = 1 / 0
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("n_workers", [0, 1, 3])
def test_results_come_in_the_order_of_the_tasks(n_workers):
    def work(task):
        time.sleep(0.01 * (task % 3 == 0))  # every third is overtaken
        return task**2

    assert list(in_order(work, iter(range(10)), n_workers)) == [(task, task**2) for task in range(10)]


@pytest.mark.parametrize("n_workers", [0, 2])
def test_little_more_is_begun_than_is_being_worked_on(n_workers):
    drawn = []
    results = in_order(str, (drawn.append(task) or task for task in range(100)), n_workers)
    next(results)
    assert len(drawn) <= n_workers + 2
    results.close()


def test_there_is_a_core():
    assert n_cores() >= 1
