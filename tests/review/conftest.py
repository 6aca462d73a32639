"""A finished run to review, and short ways to act on it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.made_runs import make_run
from tests.review.acting import act

from justright.data import ImageSet
from justright.data.folder import write_tree
from justright.data.readers import FolderReader
from justright.review.open_review import OpenReview
from justright.runs.run_folder import RunFolder


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory) -> Path:
    return make_run(tmp_path_factory.mktemp("finished") / "run", per_class=8).path


@pytest.fixture
def run(finished_run, tmp_path) -> RunFolder:
    """A copy that the test may write to."""
    return RunFolder.open(Path(shutil.copytree(finished_run, tmp_path / "run")))


@pytest.fixture
def photos(run, tmp_path) -> Path:
    """Write the images of the target to a folder, and make the run refer to these files."""
    root, target = tmp_path / "photos", RunFolder.open(run.path).target
    write_tree(target, root)
    paths = [f"{path}.png" for path in target.paths]
    files = ImageSet.of(FolderReader(root), dataset="target", path=paths).with_ids()
    files.with_content().save(run.path / "target.parquet")
    return root


@pytest.fixture
def opened(run) -> OpenReview:
    return OpenReview(run)


@pytest.fixture
def say():
    """`say(opened, "merge", cluster=1, into=2)`: one action on top of everything so far."""
    return act
