from __future__ import annotations

from dataclasses import replace

from tests.benchmark.test_tables_of_the_paper import tiny

from justright.benchmark.results import missing_runs
from justright.benchmark.runner import suite_costs
from justright.benchmark.suite import read_suite
from justright.runs.costs import Rates


def test_more_seeds_take_more_time_and_disk(tmp_path, monkeypatch):
    rates = Rates(extract=0.01, view=0.01, step=0.001)
    monkeypatch.setattr("justright.runs.measured_rates.measure", lambda *given: rates)
    suite = tiny(read_suite("tab2", "glyphs"))
    one = suite_costs(suite, missing_runs(suite, tmp_path))
    more = replace(suite, seeds=(0, 1))
    two = suite_costs(more, missing_runs(more, tmp_path))
    assert two.n_runs == 2 * one.n_runs
    assert two.n_bytes > one.n_bytes > 0
    assert two.seconds > one.seconds > 0
    assert f"{one.n_runs} runs, about " in str(one)
