"""A finished run to review, and short ways to act on it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.review.acting import act
from tests.runs import make_run

from justright.benchmark.run_folder import RunFolder
from justright.review.desk import Desk


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory) -> Path:
    return make_run(tmp_path_factory.mktemp("finished") / "run", per_class=8).path


@pytest.fixture
def run(finished_run, tmp_path) -> RunFolder:
    """A copy that the test may write to."""
    return RunFolder.open(Path(shutil.copytree(finished_run, tmp_path / "run")))


@pytest.fixture
def desk(run) -> Desk:
    return Desk(run)


@pytest.fixture
def say():
    """`say(desk, "merge", cluster=1, into=2)`: one action on top of everything so far."""
    return act
