"""`discover` with too little disk raises before it computes; a cached run still works."""

from __future__ import annotations

import shutil
from collections import namedtuple

from click.testing import CliRunner
from tests.bad_day.commands import discover

from justright.cli import main

Usage = namedtuple("Usage", "total used free")


def test_discover_rejects_too_little_disk_before_it_computes(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))

    def call(n_free, *more):
        monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 0, n_free))
        return CliRunner().invoke(main, [str(word) for word in discover(tmp_path / "run", *more)])

    refused = call(20_000_000, "--set", "views=100")
    message = " ".join(refused.stderr.split())
    assert refused.exit_code == 1
    assert "Expected: 47 MB of disk space: " in message
    assert "100 weak views of each image in float16" in message
    assert "there is not enough disk space for this run" in message
    assert "--set views=2" in message
    assert not (tmp_path / "run").exists(), "nothing was written"
    assert not (tmp_path / "home" / "banks").exists()
    done = call(20_000_000)
    assert done.exit_code == 0, done.output
    again = call(100_000)
    assert again.exit_code == 0, again.output
