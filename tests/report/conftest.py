"""A small pool of two data sets, weighed by each selector, and a finished run with its page."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from tests.made_runs import make_run
from tests.remembered_maps import remember_maps

from justright.features.table import FeatureTable
from justright.report.run_report import write_report
from justright.runs.run_folder import RunFolder
from justright.runs.selection import Selection, merge_tables
from justright.selection import row_shards, stability


def blobs(centers, per, seed, spread=0.2):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(centers)), per)
    return (centers[labels] + rng.normal(0, spread, (len(labels), centers.shape[1]))).astype(np.float32), labels


@pytest.fixture(scope="session", autouse=True)
def maps():
    yield from remember_maps()


@pytest.fixture
def weighed():
    """A function that fits a selector and returns the result."""
    rng = np.random.default_rng(0)
    centers = 0.6 + rng.normal(size=(13, 8))
    tables = []
    for number, (name, part) in enumerate({"birds": centers[:5], "<pets> & co": centers[5:9]}.items()):
        x, labels = blobs(part, 6, number)
        tables.append(FeatureTable.of(x, label=labels, dataset=[name] * len(x)))
    pool = merge_tables(tables)
    target = FeatureTable.of(blobs(centers[8:], 10, 9)[0])

    def weigh(name, selector, n_resamples=0):
        selector.fit_stream(pool, row_shards(target.features))
        stable = None
        if n_resamples:
            stable = stability(selector, pool.features, pool.labels, target.features, n_resamples=n_resamples)
        return Selection.of(name, selector, pool, stable)

    return weigh


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A finished run that tests only read."""
    return make_run(tmp_path_factory.mktemp("runs") / "run", per_class=10)


@pytest.fixture(scope="session")
def report(finished):
    """The page of the finished run."""
    return write_report(finished).read_text(encoding="utf-8")


@pytest.fixture
def own_run(finished, tmp_path):
    """A copy of the finished run to change."""
    shutil.copytree(finished.path, tmp_path / "run")
    return RunFolder.open(tmp_path / "run")


@pytest.fixture
def bare_run(own_run):
    """A copy without the files for figures: its page is written quickly and still has all clusters."""
    for name in ("weights.parquet", "metrics.jsonl", "count.json", "scores.json", "truth.parquet"):
        (own_run.path / name).unlink()
    (own_run.path / "pool.features").rename(own_run.path / "elsewhere")
    return RunFolder.open(own_run.path)
